//! `GET /v1/bulk/quotes` and `/v1/bulk/metrics`: quotes or metrics of up to 1,000 symbols in one call (Professional).

pub(crate) mod dividends;
mod stream;

use chrono::NaiveDate;
use market::dated_text::LimitToHistory;
use market::metrics::DerivedRows;
use market::row::{Metrics, Quote, TableRow};
use serde::Serialize;
use tokio_postgres::Row;

use crate::answer::{FinishedBody, HandlerContext, Professional, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, SymbolList, parameters};
use crate::read::lookup;
use crate::read::past_securities::PastSecurity;
use crate::render::rows::{self, RenderError};
use crate::routes::endpoint;
use crate::routes::stocks::metrics::{annual_lines, is_by_year, split_annual_totals};
use stream::{Bulk, BulkQuery, MAX_SYMBOLS, RowRenderer, stream_bulk};

const QUOTES: &str = include_str!("../../queries/bulk/quotes.sql");
const METRICS: &str = include_str!("../../queries/bulk/metrics.sql");

parameters! {
    /// Parameters of bulk quotes and metrics.
    pub(crate) struct BulkParameters<const METRICS: bool> by reader {
        /// Comma-separated symbols, 1 to 1000. Unknown symbols are listed in `meta.errors`.
        symbols: SymbolList = reader.read_required_symbols(MAX_SYMBOLS),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(if METRICS { Metrics::COLUMNS } else { Quote::COLUMNS }),
    }

    const IS_COSTLY: bool = true;
    const TIER_MATTERS: bool = METRICS;
    const FEATURE: &'static str = "bulk_operations";
}

async fn stream_rows<T: TableRow + Serialize, const METRICS: bool>(
    context: HandlerContext<BulkParameters<METRICS>>,
    outlet: ResponseWriter,
    statement: &str,
    of_past: fn(&DerivedRows) -> T,
    limit: fn(T, NaiveDate) -> T,
    render: RowRenderer<T>,
) -> Result<FinishedBody, ApiError> {
    let BulkParameters { symbols, knowledge, output } = &context.parameters;
    let past = context.find_version(knowledge.as_ref()).await?;
    let (parameters, known_at, restricted) = (vec![], context.known_at, context.restricted().await?);
    let depth = METRICS.then(|| context.depth());
    let limit = |row: T| match depth {
        Some(depth) => limit(row, depth.from),
        None => row,
    };
    let by_year = split_annual_totals(output);
    let output = by_year.as_ref().unwrap_or(output);
    let asked = BulkQuery { symbols, output, statement, parameters, depth, past, known_at, restricted };
    let by_symbol = |_: &[&str], rows: &[Row]| {
        let rows = lookup::rows_by_symbol(rows)?;
        Ok(rows.into_iter().map(|(symbol, row)| (symbol, limit(row))).collect())
    };
    let of_past = |security: &PastSecurity| limit(of_past(&security.rows));
    stream_bulk(&context.generation, outlet, asked, by_symbol, of_past, render).await
}

endpoint! {
    /// Bulk quotes (Professional)
    ///
    /// Quotes in request order. The request counts as one call for any number of symbols.
    get "/v1/bulk/quotes", tag "Bulk", returns "Quotes in request order",
    quotes(Access<Professional, BulkParameters<false>>) -> Bulk<Quote> {
        respond_streaming(|context, outlet| stream_rows(context, outlet, QUOTES, |rows| rows.quote.clone(), |row, _| row, rows::render_rows))
    }
}

endpoint! {
    /// Bulk metrics (Professional)
    ///
    /// Metrics in request order. The request counts as one call for any number of symbols. If `fields` of a CSV request
    /// contains `annual_totals`, the CSV has one row per symbol and year. The columns `year`, `amount` and `complete`
    /// replace `annual_totals`.
    get "/v1/bulk/metrics", tag "Bulk", returns "Metrics in request order",
    metrics(Access<Professional, BulkParameters<true>>) -> Bulk<Metrics> {
        respond_streaming(|context, outlet| stream_rows(context, outlet, METRICS, |rows| rows.metrics.clone(), Metrics::limit_to_days_from, render_metrics))
    }
}

/// Renders metrics: one row per symbol, or one row per symbol and year if the output has the columns of one year.
fn render_metrics(output: &Output, metrics: &[Metrics]) -> Result<Vec<u8>, RenderError> {
    if !is_by_year(output) {
        return rows::render_rows(output, metrics);
    }
    let lines: Vec<_> = metrics.iter().flat_map(|metrics| annual_lines(metrics, metrics)).collect();
    rows::render_rows(output, &lines)
}
