//! `GET /v1/bulk/quotes` and `/v1/bulk/metrics`: quotes or metrics of up to 1,000 symbols in one call (Professional).
//!
//! `GET /v1/bulk/dividends`: newest dividends of up to 1,000 symbols.

mod stream;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::NaiveDate;
use market::dated_text::LimitToHistory;
use market::metrics::DerivedRows;
use market::row::{DividendRow, Metrics, Quote, TableRow};
use serde::Serialize;
use store::FromRow;
use tokio_postgres::Row;
use utoipa::ToSchema;

use super::endpoint;
use super::stocks::metrics::{annual_lines, is_by_year, split_annual_totals};
use super::stocks::records::{DividendFilters, selected_statuses};
use crate::answer::{FinishedBody, HandlerContext, Professional, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{Knowledge, OtherDateRanges, Output, ResponseFormat, SymbolList, parameters};
use crate::read::past_securities::PastSecurity;
use crate::read::{QueryError, lookup};
use crate::render::rows::{self, RenderError};
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

const DIVIDENDS: &str = include_str!("../../queries/bulk/dividends.sql");

/// The dividends of one symbol.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SymbolDividends {
    /// Canonical ticker.
    symbol: String,
    /// Dividends, newest first. The list has all dividends of its oldest day, so it may be longer than `per_symbol`.
    dividends: Vec<DividendRow>,
    /// True if there are older dividends in the requested date range.
    has_more: bool,
    /// `start_date` of a request for the older dividends; null if there are none.
    start_date: Option<NaiveDate>,
    /// `end_date` of a request for the older dividends; null if there are none.
    end_date: Option<NaiveDate>,
}

const DIVIDENDS_COLUMNS: &[&str] = &["symbol", "dividends", "has_more", "start_date", "end_date"];
/// Columns of the CSV form, which has one row per dividend.
static DIVIDEND_COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| DividendRow::COLUMNS.iter().copied().chain(["has_more"]).collect());

/// CSV row of a dividend.
#[derive(Debug, Serialize)]
struct DividendLine<'a> {
    #[serde(flatten)]
    dividend: &'a DividendRow,
    /// True if the symbol has older dividends in the requested date range.
    has_more: bool,
}
parameters! {
    /// Parameters of bulk dividends.
    pub(crate) struct BulkDividendsParameters by reader {
        /// Comma-separated symbols, 1 to 1000. Unknown symbols are listed in `meta.errors`.
        symbols: SymbolList = reader.read_required_symbols(MAX_SYMBOLS),
        /// First ex-date. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last ex-date. Default: no limit, so that declared future ex-dates are included.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Number of newest records to return per symbol. Further records of the oldest returned day are included too.
        /// `has_more` is true if there are older records.
        per_symbol: i64 = reader.read_integer("per_symbol", 1..=100, 20),
        /// Includes dividends that are expected in the next 12 months but not declared. Their amounts and payment
        /// dates are estimates.
        include_projected: bool = reader.read_bool_or("include_projected", false),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output_with_csv(DIVIDENDS_COLUMNS, &DIVIDEND_COLUMNS),
    }

    const IS_COSTLY: bool = true;
    const FEATURE: &'static str = "bulk_operations";
    const TIER_MATTERS: bool = true;
}

endpoint! {
    /// Bulk dividends (Professional)
    ///
    /// Newest dividends of each symbol. The symbols are in request order. The request counts as one call for any number
    /// of symbols.
    get "/v1/bulk/dividends", tag "Bulk", returns "Dividends in request order",
    dividends(Access<Professional, BulkDividendsParameters>) -> Bulk<SymbolDividends> { respond_streaming(stream_dividends) }
}

async fn stream_dividends(
    context: HandlerContext<BulkDividendsParameters>,
    outlet: ResponseWriter,
) -> Result<FinishedBody, ApiError> {
    let asked = &context.parameters;
    let filters = DividendFilters {
        start: context.first_day(asked.start_date),
        end: asked.end_date,
        types: None,
        statuses: selected_statuses(None, asked.include_projected),
        other_days: OtherDateRanges::default(),
    };
    let query = BulkQuery {
        symbols: &asked.symbols,
        output: &asked.output,
        statement: DIVIDENDS,
        parameters: vec![&filters.start, &filters.end, &asked.per_symbol, &filters.statuses],
        depth: context.depth_without(asked.start_date),
        past: context.find_version(asked.knowledge.as_ref()).await?,
        known_at: context.known_at,
        restricted: context.restricted().await?,
    };
    let by_symbol = |symbols: &[&str], rows: &[Row]| dividends_by_symbol(symbols, rows, filters.start);
    let of_past = |security: &PastSecurity| SymbolDividends::of_past(security, &filters, asked.per_symbol);
    stream_bulk(&context.generation, outlet, query, by_symbol, of_past, render_dividends).await
}

/// Dividends of each symbol; an empty list for a symbol without dividends.
fn dividends_by_symbol(
    symbols: &[&str],
    rows: &[Row],
    start: NaiveDate,
) -> Result<HashMap<String, SymbolDividends>, QueryError> {
    let empty = |symbol: &&str| ((*symbol).to_owned(), SymbolDividends::empty(symbol));
    let mut by_symbol: HashMap<String, SymbolDividends> = symbols.iter().map(empty).collect();
    for row in rows {
        let symbol: Option<&str> = row.try_get("symbol")?;
        let Some(entry) = symbol.and_then(|symbol| by_symbol.get_mut(symbol)) else { continue };
        entry.add_older(DividendRow::from_row(row)?, row.try_get("has_more")?, start);
    }
    Ok(by_symbol)
}

impl SymbolDividends {
    fn empty(symbol: &str) -> Self {
        Self {
            symbol: symbol.to_owned(),
            dividends: vec![],
            has_more: false,
            start_date: None,
            end_date: None,
        }
    }

    /// Selects the newest `per_symbol` dividends, in the order of the statement [`DIVIDENDS`]. All dividends of the
    /// oldest selected day are included.
    fn of_past(security: &PastSecurity, filters: &DividendFilters<'_>, per_symbol: i64) -> Self {
        let mut rows: Vec<_> = security.rows.dividends.iter().filter(|row| filters.accept(row)).collect();
        rows.sort_by_key(|row| {
            (Reverse(row.ex_date), row.r#type.as_str(), row.id.is_none(), row.id.as_deref())
        });
        let last = rows.iter().zip(1..).find(|(_, number)| *number == per_symbol);
        let oldest = last.map(|(row, _)| row.ex_date);
        let count = rows.iter().filter(|row| oldest.is_none_or(|oldest| oldest <= row.ex_date)).count();
        let has_more = count < rows.len();
        let mut newest = Self::empty(security.symbol());
        rows.into_iter().take(count).for_each(|row| newest.add_older(row.clone(), has_more, filters.start));
        newest
    }

    /// Adds a dividend that is not newer than the dividends added before. If `has_more`, sets `start_date` and
    /// `end_date` for a further request that returns the older dividends: `end_date` is the day before the ex-date of
    /// the added dividend.
    fn add_older(&mut self, dividend: DividendRow, has_more: bool, start: NaiveDate) {
        self.has_more = has_more;
        self.start_date = has_more.then_some(start);
        self.end_date = dividend.ex_date.pred_opt().filter(|_| has_more);
        self.dividends.push(dividend);
    }
}

/// Renders dividends: as one object per symbol in JSON, and as one row per dividend in CSV.
fn render_dividends(output: &Output, symbols: &[SymbolDividends]) -> Result<Vec<u8>, RenderError> {
    if output.format == ResponseFormat::Json {
        return rows::render_rows(output, symbols);
    }
    let mut lines = Vec::new();
    for SymbolDividends { dividends, has_more, .. } in symbols {
        lines.extend(dividends.iter().map(|dividend| DividendLine { dividend, has_more: *has_more }));
    }
    rows::render_rows(output, &lines)
}
