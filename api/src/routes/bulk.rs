//! `GET /v1/bulk/quotes`, `/metrics` and `/dividends`: many symbols in one call (Professional).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use axum::response::Response;
use chrono::NaiveDate;
use market::row::{DividendRow, Metrics, Quote, TableRow};
use serde::Serialize;
use store::FromRow;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use utoipa::{IntoParams, ToSchema};

use crate::access::{Access, Professional};
use crate::answer::{Context, Outlet, Written};
use crate::envelope::Depth;
use crate::error::ApiError;
use crate::parameters::{Described, Format, Output, Parameters, Reader, SymbolList, Window};
use crate::read::ReadError;
use crate::read::lookup;
use crate::read::projection::{Generation, Version};
use crate::render::{self, RenderError};
use crate::routes::Failures;
use crate::routes::stocks::dividends::statuses;

const QUOTES: &str = include_str!("../../queries/bulk/quotes.sql");
const METRICS: &str = include_str!("../../queries/bulk/metrics.sql");
const DIVIDENDS: &str = include_str!("../../queries/bulk/dividends.sql");
/// Symbols in one request, which counts as one call.
const MOST: usize = 1_000;
/// Symbols read at a time.
const BATCH: usize = 50;

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
    /// Rows of the answer.
    count: usize,
    /// Symbols nothing is known of.
    missing: Vec<String>,
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
    /// Newest first; a day's records are never parted, so there can be more than `per_symbol`.
    dividends: Vec<DividendRow>,
    /// Whether there are older ones in the range.
    has_more: bool,
    /// `start_date` to go on with; null when there are no more.
    start_date: Option<NaiveDate>,
    /// `end_date` to go on with; null when there are no more.
    end_date: Option<NaiveDate>,
}

const DIVIDENDS_COLUMNS: &[&str] = &["symbol", "dividends", "has_more", "start_date", "end_date"];
/// In CSV a row is a dividend.
static DIVIDEND_COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| DividendRow::COLUMNS.iter().copied().chain(["has_more"]).collect());

/// A dividend as a row of CSV.
#[derive(Debug, Serialize)]
struct DividendLine<'a> {
    #[serde(flatten)]
    dividend: &'a DividendRow,
    /// Whether the symbol has older ones in the range.
    has_more: bool,
}
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
    /// Records of a symbol, the newest, and with the last one all of its day; a symbol with more says `has_more`.
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
            output: reader.output_in(DIVIDENDS_COLUMNS, &DIVIDEND_COLUMNS),
        }
    }

    fn oldest(&self) -> Option<NaiveDate> {
        self.start_date
    }
}

/// Symbols in request order, those of one security once, as they are read and written.
struct Listed<'a> {
    output: &'a Output,
    /// The place and canonical name of each.
    known: Vec<(usize, &'a str)>,
    /// The places of symbols without a row.
    missing: Vec<usize>,
    returned: usize,
}

impl<'a> Listed<'a> {
    fn new(output: &'a Output, resolved: &'a [Option<String>]) -> Self {
        let (mut seen, mut known, mut missing) = (HashSet::new(), Vec::new(), Vec::new());
        for (place, canonical) in resolved.iter().enumerate() {
            match canonical {
                Some(canonical) if seen.insert(canonical) => known.push((place, canonical.as_str())),
                // Another spelling of a symbol that is listed already.
                Some(_) => {}
                None => missing.push(place),
            }
        }
        Self { output, known, missing, returned: 0 }
    }

    /// What is read at a time.
    fn batches(&self) -> Vec<Vec<(usize, &'a str)>> {
        self.known.chunks(BATCH).map(<[_]>::to_vec).collect()
    }

    /// The rows of a batch in its order, ready to be written.
    fn rows<T: Serialize>(
        &mut self,
        batch: &[(usize, &str)],
        mut rows: HashMap<String, T>,
        render: Render<T>,
    ) -> Result<Vec<u8>, RenderError> {
        let mut ordered = Vec::with_capacity(batch.len());
        for (place, symbol) in batch {
            match rows.remove(*symbol) {
                Some(row) => ordered.push(row),
                None => self.missing.push(*place),
            }
        }
        let mut body = render(self.output, &ordered)?;
        if self.returned > 0 && !ordered.is_empty() && self.output.format == Format::Json {
            body.insert(0, b',');
        }
        self.returned += ordered.len();
        Ok(body)
    }

    /// Accounts for every symbol.
    fn meta(mut self, symbols: &SymbolList, version: &Version, depth: Option<Depth>) -> BulkMeta {
        self.missing.sort_unstable();
        let error = |place: usize| {
            let symbol = symbols.0[place].text.clone();
            let error = format!("No stock with symbol {symbol}");
            BulkError { symbol, code: "NOT_FOUND", error }
        };
        let errors: Vec<BulkError> = self.missing.into_iter().map(error).collect();
        let missing = errors.iter().map(|error| error.symbol.clone()).collect();
        let (returned, failed) = (self.returned, errors.len());
        let summary = Summary { requested: returned + failed, returned, failed };
        let (as_of, data_version) = (version.as_of, version.to_string());
        BulkMeta { count: returned, missing, as_of, data_version, errors, summary, depth }
    }
}

/// Writes rows as the request wants them.
type Render<T> = fn(&Output, &[T]) -> Result<Vec<u8>, RenderError>;

/// What an answer of a batch's rows is made of.
struct Asked<'a> {
    symbols: &'a SymbolList,
    output: &'a Output,
    statement: &'a str,
    /// What the statement takes besides symbols.
    parameters: Vec<&'a (dyn ToSql + Sync)>,
    depth: Option<Depth>,
}

/// Writes the rows that `by_symbol` makes of each batch, all from one snapshot.
async fn write<T: Serialize>(
    generation: &Generation,
    outlet: Outlet,
    asked: Asked<'_>,
    by_symbol: impl Fn(&[&str], &[Row]) -> Result<HashMap<String, T>, ReadError>,
    render: Render<T>,
) -> Result<Written, ApiError> {
    let resolved = lookup::resolve(generation, asked.symbols).await?;
    let mut listed = Listed::new(asked.output, &resolved);
    let mut client = generation.client().await?;
    let transaction = lookup::snapshot(&mut client).await?;
    let statement = transaction.prepare_cached(asked.statement).await?;
    let version = lookup::version(generation, &transaction).await?;
    let mut body = outlet.begin(version);
    body.write(render::opening(asked.output)?)?;
    for batch in listed.batches() {
        let symbols: Vec<&str> = batch.iter().map(|(_, symbol)| *symbol).collect();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&symbols];
        parameters.extend(&asked.parameters);
        let rows = transaction.query(&statement, &parameters).await?;
        body.write(listed.rows(&batch, by_symbol(&symbols, &rows)?, render)?)?;
    }
    let meta = listed.meta(asked.symbols, &version, asked.depth);
    body.write(render::closing(asked.output, &meta)?)?;
    Ok(body.finish(None)?)
}

async fn rows<T: TableRow + Serialize, const METRICS: bool>(
    context: Context<BulkParameters<METRICS>>,
    outlet: Outlet,
    statement: &str,
    symbol: fn(&T) -> &str,
) -> Result<Written, ApiError> {
    let BulkParameters { symbols, output } = &context.parameters;
    let asked = Asked { symbols, output, statement, parameters: vec![], depth: None };
    let by_symbol = |_: &[&str], rows: &[Row]| {
        let rows: Vec<T> = lookup::present(rows)?;
        Ok(rows.into_iter().map(|row| (symbol(&row).to_owned(), row)).collect())
    };
    write(&context.generation, outlet, asked, by_symbol, |output, rows| render::rows(output, rows)).await
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
    access
        .answer_in_parts(|context, outlet| rows::<Quote, false>(context, outlet, QUOTES, |row| &row.symbol))
        .await
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
    access
        .answer_in_parts(|context, outlet| rows::<Metrics, true>(context, outlet, METRICS, |row| &row.symbol))
        .await
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
    access.answer_in_parts(dividends_of).await
}

async fn dividends_of(
    context: Context<BulkDividendsParameters>,
    outlet: Outlet,
) -> Result<Written, ApiError> {
    let asked = &context.parameters;
    let start = asked.start_date.unwrap_or_else(|| context.floor());
    let statuses = statuses(None, asked.include_projected);
    let depth = asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier });
    let asked = Asked {
        symbols: &asked.symbols,
        output: &asked.output,
        statement: DIVIDENDS,
        parameters: vec![&start, &asked.end_date, &asked.per_symbol, &statuses],
        depth,
    };
    let by_symbol = |symbols: &[&str], rows: &[Row]| dividends_by_symbol(symbols, rows, start);
    write(&context.generation, outlet, asked, by_symbol, render_dividends).await
}

/// The dividends of each symbol; none is an empty list.
fn dividends_by_symbol(
    symbols: &[&str],
    rows: &[Row],
    start: NaiveDate,
) -> Result<HashMap<String, SymbolDividends>, ReadError> {
    let empty = |symbol: &&str| ((*symbol).to_owned(), SymbolDividends::empty(symbol));
    let mut by_symbol: HashMap<String, SymbolDividends> = symbols.iter().map(empty).collect();
    for row in rows {
        let symbol: Option<&str> = row.try_get("symbol")?;
        let Some(entry) = symbol.and_then(|symbol| by_symbol.get_mut(symbol)) else { continue };
        entry.take(DividendRow::from_row(row)?, row.try_get("has_more")?, start);
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

    /// Adds the next older record; with more to come, the next request goes on the day before it.
    fn take(&mut self, dividend: DividendRow, has_more: bool, start: NaiveDate) {
        self.has_more = has_more;
        self.start_date = has_more.then_some(start);
        self.end_date = dividend.ex_date.pred_opt().filter(|_| has_more);
        self.dividends.push(dividend);
    }
}

/// In CSV a row is a dividend.
fn render_dividends(output: &Output, symbols: &[SymbolDividends]) -> Result<Vec<u8>, RenderError> {
    if output.format == Format::Json {
        return render::rows(output, symbols);
    }
    let mut lines = Vec::new();
    for SymbolDividends { dividends, has_more, .. } in symbols {
        lines.extend(dividends.iter().map(|dividend| DividendLine { dividend, has_more: *has_more }));
    }
    render::rows(output, &lines)
}
