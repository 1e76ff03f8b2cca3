//! `/calendar.ics`: dates of symbols for calendar programs, where pages are public.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::dashboard::market::api_calls::MarketError;
use crate::dashboard::market::calendar::icalendar::{MEDIA_TYPE, call, write_calendar};
use crate::dashboard::market::reader::MarketReader;

pub(crate) async fn show_file(reader: MarketReader) -> Response {
    match write_file(&reader).await {
        Ok(calendar) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], calendar).into_response()
        }
        Err(error) => reader.respond_error(error).await,
    }
}

async fn write_file(reader: &MarketReader) -> Result<String, MarketError> {
    let symbols = reader.parameters().text("symbols").to_owned();
    let answer = reader.calls().json(&call(&symbols, reader.app.today())).await?;
    let rows = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(write_calendar(rows, host_of(&reader.origin)))
}

/// Host of an origin, without scheme and port.
pub(crate) fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}
