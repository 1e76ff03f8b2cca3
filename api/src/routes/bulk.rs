//! `GET /v1/bulk/quotes`, `/metrics` and `/dividends`: many symbols in one call (Professional).

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::response::Response;
use chrono::NaiveDate;
use market::row::{DividendRow, Metrics, Quote, TableRow};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::{Access, Professional};
use crate::answer::{Context, Rendered};
use crate::envelope::Depth;
use crate::error::ApiError;
use crate::parameters::{Described, Output, Parameters, Reader, SymbolList, Window};
use crate::read::lookup;
use crate::read::projection::Version;
use crate::render;
use crate::routes::Failures;
use crate::routes::stocks::dividends::statuses;

const QUOTES: &str = include_str!("../../queries/bulk/quotes.sql");
const METRICS: &str = include_str!("../../queries/bulk/metrics.sql");
const DIVIDENDS: &str = include_str!("../../queries/bulk/dividends.sql");
/// Symbols in one request, which counts as one call.
const MOST: usize = 1_000;

/// Rows in request order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bulk<T> {
    /// One row a symbol, in request order.
    data: Vec<T>,
    /// What the answer rests on, and what is missing.
    meta: BulkMeta,
}

/// What a bulk answer rests on, and what is missing from it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkMeta {
    /// The market's as-of date.
    as_of: Option<NaiveDate>,
    /// Generation and log sequence the answer was made from.
    data_version: String,
    /// Symbols without a row.
    errors: Vec<BulkError>,
    /// Symbols counted.
    summary: Summary,
    /// Where the range begins because the tier reaches no further back.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<Depth>,
}

/// A symbol without a row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkError {
    /// The symbol as it was asked for.
    symbol: String,
    /// Always NOT_FOUND.
    code: &'static str,
    /// The same for people.
    error: String,
}

/// Counts of symbols.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Summary {
    /// Different symbols asked for.
    requested: usize,
    /// Those with a row.
    returned: usize,
    /// Those without.
    failed: usize,
}

/// The dividends of one symbol.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SymbolDividends {
    /// Canonical ticker.
    symbol: String,
    /// Newest first.
    dividends: Vec<DividendRow>,
}

const DIVIDENDS_COLUMNS: &[&str] = &["symbol", "dividends"];
static QUOTE_COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| Quote::COLUMNS.to_vec());

/// What quotes and metrics take.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BulkParameters<const METRICS: bool> {
    /// Comma-separated symbols, 1 to 1000; unknown ones are in `meta.errors`.
    #[param(value_type = String)]
    symbols: SymbolList,
    #[param(ignore)]
    output: Output,
}

impl<const METRICS: bool> Parameters for BulkParameters<METRICS> {
    const IS_COSTLY: bool = true;
    const FEATURE: &'static str = "bulk_operations";

    fn read(reader: &mut Reader<'_>) -> Self {
        let columns: &'static [&'static str] = if METRICS { Metrics::COLUMNS } else { &QUOTE_COLUMNS };
        Self { symbols: reader.required_symbols(MOST), output: reader.output(columns) }
    }
}

/// What dividends take.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BulkDividendsParameters {
    /// Comma-separated symbols, 1 to 1000; unknown ones are in `meta.errors`.
    #[param(value_type = String)]
    symbols: SymbolList,
    /// First ex-date. Default: as far as the tier reaches; earlier is a 403.
    start_date: Option<NaiveDate>,
    /// Last ex-date. Default: none, declared future ones included.
    end_date: Option<NaiveDate>,
    /// Records of a symbol at most, the newest.
    #[param(value_type = Option<i64>)]
    per_symbol: i64,
    /// With dividends expected in the next 12 months but not declared; amount and payment date are estimates.
    #[param(value_type = Option<bool>, default = false)]
    include_projected: bool,
    #[param(ignore)]
    output: Output,
}

impl Parameters for BulkDividendsParameters {
    const IS_COSTLY: bool = true;
    const FEATURE: &'static str = "bulk_operations";
    const TIER_MATTERS: bool = true;

    fn read(reader: &mut Reader<'_>) -> Self {
        let symbols = reader.required_symbols(MOST);
        let Window { start, end } = reader.window();
        let per_symbol = reader.integer("per_symbol", 1..=100, 20);
        Self {
            symbols,
            start_date: start,
            end_date: end,
            per_symbol,
            include_projected: reader.flag("include_projected").unwrap_or(false),
            output: reader.output(DIVIDENDS_COLUMNS),
        }
    }

    fn oldest(&self) -> Option<NaiveDate> {
        self.start_date
    }
}

/// Puts rows into request order and accounts for every symbol.
fn made<T: Serialize>(
    symbols: &SymbolList,
    resolved: &[Option<String>],
    mut rows: HashMap<String, T>,
    version: Version,
    output: &Output,
    depth: Option<Depth>,
) -> Result<Rendered, ApiError> {
    let (mut data, mut errors) = (Vec::new(), Vec::new());
    let mut listed: Vec<&str> = Vec::new();
    for (asked, canonical) in symbols.0.iter().zip(resolved) {
        match canonical.as_ref().and_then(|canonical| rows.remove(canonical).map(|row| (canonical, row))) {
            Some((canonical, row)) => {
                listed.push(canonical);
                data.push(row);
            }
            // Another spelling of a row that is listed already.
            None if canonical.as_ref().is_some_and(|canonical| listed.contains(&canonical.as_str())) => {}
            None => {
                let error = format!("No stock with symbol {}", asked.text);
                errors.push(BulkError { symbol: asked.text.clone(), code: "NOT_FOUND", error });
            }
        }
    }
    let summary =
        Summary { requested: data.len() + errors.len(), returned: data.len(), failed: errors.len() };
    let meta = BulkMeta { as_of: version.as_of, data_version: version.to_string(), errors, summary, depth };
    Ok(Rendered { body: render::list(output, &data, &meta)?, version, next_cursor: None })
}

async fn rows<T: TableRow + Serialize, const METRICS: bool>(
    context: Context<BulkParameters<METRICS>>,
    statement: &str,
    symbol: fn(&T) -> &str,
) -> Result<Rendered, ApiError> {
    let resolved = lookup::resolve(&context.generation, &context.parameters.symbols).await?;
    let known: Vec<&str> = resolved.iter().flatten().map(String::as_str).collect();
    let rows = lookup::query(&context.generation, statement, &[&known]).await?;
    let version = Version::of(rows.first().ok_or_else(|| lookup::unversioned(&context.generation))?)?;
    let rows: Vec<T> = lookup::present(&rows)?;
    let rows = rows.into_iter().map(|row| (symbol(&row).to_owned(), row)).collect();
    made(&context.parameters.symbols, &resolved, rows, version, &context.parameters.output, None)
}

/// Bulk quotes (Professional)
///
/// In request order; one call however many symbols.
#[utoipa::path(
    get, path = "/v1/bulk/quotes", tag = "Bulk", security(("bearer" = []), ("api_key" = [])),
    params(Described<BulkParameters<false>>),
    responses((status = 200, description = "Quotes in request order", body = Bulk<Quote>), Failures)
)]
pub(crate) async fn quotes(access: Access<Professional, BulkParameters<false>>) -> Response {
    access.answer(|context| rows::<Quote, false>(context, QUOTES, |row| &row.symbol)).await
}

/// Bulk metrics (Professional)
///
/// In request order; one call however many symbols.
#[utoipa::path(
    get, path = "/v1/bulk/metrics", tag = "Bulk", security(("bearer" = []), ("api_key" = [])),
    params(Described<BulkParameters<true>>),
    responses((status = 200, description = "Metrics in request order", body = Bulk<Metrics>), Failures)
)]
pub(crate) async fn metrics(access: Access<Professional, BulkParameters<true>>) -> Response {
    access.answer(|context| rows::<Metrics, true>(context, METRICS, |row| &row.symbol)).await
}

/// Bulk dividends (Professional)
///
/// The newest records of each symbol, in request order; one call however many symbols.
#[utoipa::path(
    get, path = "/v1/bulk/dividends", tag = "Bulk", security(("bearer" = []), ("api_key" = [])),
    params(Described<BulkDividendsParameters>),
    responses((status = 200, description = "Dividends in request order", body = Bulk<SymbolDividends>), Failures)
)]
pub(crate) async fn dividends(access: Access<Professional, BulkDividendsParameters>) -> Response {
    access.answer(dividends_of).await
}

async fn dividends_of(context: Context<BulkDividendsParameters>) -> Result<Rendered, ApiError> {
    let asked = &context.parameters;
    let resolved = lookup::resolve(&context.generation, &asked.symbols).await?;
    let known: Vec<&str> = resolved.iter().flatten().map(String::as_str).collect();
    let start = asked.start_date.unwrap_or_else(|| context.floor());
    let statuses = statuses(None, asked.include_projected);
    let rows = lookup::query(
        &context.generation,
        DIVIDENDS,
        &[&known, &start, &asked.end_date, &asked.per_symbol, &statuses],
    )
    .await?;
    let version = Version::of(rows.first().ok_or_else(|| lookup::unversioned(&context.generation))?)?;
    let empty = |symbol: &&str| {
        ((*symbol).to_owned(), SymbolDividends { symbol: (*symbol).to_owned(), dividends: vec![] })
    };
    let mut by_symbol: HashMap<String, SymbolDividends> = known.iter().map(empty).collect();
    for row in lookup::present::<DividendRow>(&rows)? {
        if let Some(entry) = by_symbol.get_mut(&row.symbol) {
            entry.dividends.push(row);
        }
    }
    let depth = asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier });
    made(&asked.symbols, &resolved, by_symbol, version, &asked.output, depth)
}
