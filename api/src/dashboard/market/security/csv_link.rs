//! `/s/{symbol}/{block}.csv`: the rows of a block as CSV, for spreadsheets.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::Response;

use crate::dashboard::market::api_calls::{MarketError, MarketResult, with_parameter};
use crate::dashboard::market::page::as_file;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::security::calls::{PriceChoice, SecurityBlock};

pub(crate) async fn show_csv(
    reader: MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match read_csv(&reader, path).await {
        Ok(response) => response,
        Err(error) => reader.respond_error(error).await,
    }
}

async fn read_csv(
    reader: &MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> MarketResult<Response> {
    let nothing = || MarketError::NotFound("Nothing is at this address".to_owned());
    let Path((symbol, file)) = path.map_err(|_| nothing())?;
    let name = file.strip_suffix(".csv").ok_or_else(nothing)?;
    let choice = PriceChoice::read(&reader.parameters(), reader.depth_years());
    let block: SecurityBlock = name.parse().map_err(|_| nothing())?;
    let calls = reader.calls();
    // Check that the symbol exists: some calls respond with an empty list for an unknown symbol.
    calls.json(&SecurityBlock::Profile.call(&symbol, &choice)).await?;
    let response = calls.respond(&with_parameter(&block.call(&symbol, &choice), "format=csv")).await?;
    match response.status() {
        StatusCode::OK => Ok(as_file(response, &file_name(&symbol, name))),
        status if status.is_client_error() => Err(nothing()),
        status => Err(MarketError::Unavailable(status.to_string())),
    }
}

/// Name of the CSV file. In the symbol, all characters except ASCII letters and digits become hyphens.
fn file_name(symbol: &str, block: &str) -> String {
    let symbol: String = symbol.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{symbol}-{block}.csv")
}
