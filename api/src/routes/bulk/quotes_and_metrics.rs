//! `GET /v1/bulk/quotes` and `/v1/bulk/metrics`: quotes or metrics of up to 1,000 symbols.

use std::sync::Arc;

use axum::response::Response;
use market::metrics::DerivedRows;
use market::row::{Metrics, Quote, TableRow};
use serde::Serialize;
use tokio_postgres::Row;

use super::stream::{Bulk, BulkQuery, MAX_SYMBOLS, RowRenderer, stream_bulk};
use crate::answer::{Access, FinishedBody, HandlerContext, Professional, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{
    DocumentedParameters, Knowledge, Output, ParameterReader, Parameters, SymbolList, parameters,
};
use crate::read::lookup;
use crate::read::past_securities::PastSecurity;
use crate::render::rows;
use crate::routes::ErrorResponses;
use crate::routes::stocks::metrics::ANNUAL_TOTALS;

const QUOTES: &str = include_str!("../../../queries/bulk/quotes.sql");
const METRICS: &str = include_str!("../../../queries/bulk/metrics.sql");

parameters! {
    /// Parameters of bulk quotes and metrics.
    pub(crate) struct BulkParameters<const METRICS: bool> {
        /// Comma-separated symbols, 1 to 1000. Unknown symbols are listed in `meta.errors`.
        symbols: SymbolList,
        knowledge: Option<Knowledge>,
        output: Output,
    }
}

impl<const METRICS: bool> Parameters for BulkParameters<METRICS> {
    const IS_COSTLY: bool = true;
    const FEATURE: &'static str = "bulk_operations";

    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let columns: &'static [&'static str] = if METRICS { Metrics::COLUMNS } else { Quote::COLUMNS };
        Self {
            symbols: reader.read_required_symbols(MAX_SYMBOLS),
            knowledge: reader.read_knowledge(),
            output: reader.read_output(columns).expand_if_named(ANNUAL_TOTALS),
        }
    }
}

async fn stream_rows<T: TableRow + Serialize, const METRICS: bool>(
    context: HandlerContext<BulkParameters<METRICS>>,
    outlet: ResponseWriter,
    statement: &str,
    symbol: fn(&T) -> &str,
    of_past: fn(&DerivedRows) -> T,
) -> Result<FinishedBody, ApiError> {
    let BulkParameters { symbols, knowledge, output } = &context.parameters;
    let past = context.find_version(knowledge.as_ref()).await?;
    let (parameters, known_at) = (vec![], context.known_at);
    let asked = BulkQuery { symbols, output, statement, parameters, depth: None, past, known_at };
    let by_symbol = |_: &[&str], rows: &[Row]| {
        let rows: Vec<T> = lookup::rows_with_symbol(rows)?;
        Ok(rows.into_iter().map(|row| (symbol(&row).to_owned(), row)).collect())
    };
    let of_past = async |securities: Vec<Arc<PastSecurity>>| {
        Ok::<_, ApiError>(securities.iter().map(|security| of_past(&security.rows)).collect())
    };
    let render: RowRenderer<T> = |output, rows| rows::render_rows(output, rows);
    stream_bulk(&context.generation, outlet, asked, by_symbol, of_past, render).await
}

/// Bulk quotes (Professional)
///
/// Quotes in request order. The request counts as one call for any number of symbols.
#[utoipa::path(
    get, path = "/v1/bulk/quotes", tag = "Bulk", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<BulkParameters<false>>),
    responses((status = 200, description = "Quotes in request order", body = Bulk<Quote>), ErrorResponses)
)]
pub(crate) async fn quotes(access: Access<Professional, BulkParameters<false>>) -> Response {
    access
        .respond_streaming(|context, outlet| {
            stream_rows::<Quote, false>(context, outlet, QUOTES, |row| &row.symbol, |rows| rows.quote.clone())
        })
        .await
}

/// Bulk metrics (Professional)
///
/// Metrics in request order. The request counts as one call for any number of symbols. If `fields` of a CSV request
/// contains `annual_totals`, the CSV has one row per symbol and year. The columns `year`, `amount` and `complete`
/// replace `annual_totals`.
#[utoipa::path(
    get, path = "/v1/bulk/metrics", tag = "Bulk", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<BulkParameters<true>>),
    responses((status = 200, description = "Metrics in request order", body = Bulk<Metrics>), ErrorResponses)
)]
pub(crate) async fn metrics(access: Access<Professional, BulkParameters<true>>) -> Response {
    access
        .respond_streaming(|context, outlet| {
            stream_rows::<Metrics, true>(
                context,
                outlet,
                METRICS,
                |row| &row.symbol,
                |rows| rows.metrics.clone(),
            )
        })
        .await
}
