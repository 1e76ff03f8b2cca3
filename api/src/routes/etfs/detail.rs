//! `GET /v1/etfs/{symbol}`: details of one fund.

use market::row::{EtfRow, TableRow};

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Output, PathSymbol, parameters};
use crate::read::{QueryError, lookup};
use crate::render::envelope::Single;
use crate::routes::endpoint;

const DETAIL: &str = include_str!("../../../queries/etfs/detail.sql");

parameters! {
    /// Parameters of fund details.
    pub(crate) struct DetailParameters by reader {
        symbol: PathSymbol = reader.read_symbol(),
        output: Output = reader.read_output(EtfRow::COLUMNS),
    }
}

/// Error 404 for an unknown fund.
pub(super) fn unknown_fund_error(symbol: &PathSymbol) -> ApiError {
    ApiError::NotFound(format!("No ETF with symbol {}", symbol.text))
}

endpoint! {
    /// ETF details
    ///
    /// Returns the fields of a row of `/v1/stocks`, followed by fund data and totals of the holdings.
    get "/v1/etfs/{symbol}", tag "ETFs", returns "The fund",
    detail(Access<Free, DetailParameters>) -> Single<EtfRow> { respond(render) }
}

async fn render(context: HandlerContext<DetailParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let found = lookup::find_one::<EtfRow>(&context.generation, DETAIL, &asked.symbol).await;
    let (version, row) = found.map_err(|error| match error {
        QueryError::UnknownSymbol(_) => unknown_fund_error(&asked.symbol),
        other => other.into(),
    })?;
    context.render_single(&asked.output, version, &row)
}
