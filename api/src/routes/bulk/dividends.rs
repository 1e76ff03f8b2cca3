//! `GET /v1/bulk/dividends`: newest dividends of up to 1,000 symbols.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use chrono::NaiveDate;
use market::row::{DividendRow, TableRow};
use serde::Serialize;
use store::FromRow;
use tokio_postgres::Row;
use utoipa::ToSchema;

use super::stream::{Bulk, BulkQuery, MAX_SYMBOLS, stream_bulk};
use crate::answer::{FinishedBody, HandlerContext, Professional, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, ResponseFormat, SymbolList, parameters};
use crate::read::past_securities::PastSecurity;
use crate::read::{QueryError, ServedGeneration};
use crate::render::envelope::Depth;
use crate::render::rows::{self, RenderError};
use crate::routes::endpoint;
use crate::routes::past::security::rank_dividends;
use crate::routes::stocks::dividends::selected_statuses;

const DIVIDENDS: &str = include_str!("../../../queries/bulk/dividends.sql");

/// The dividends of one symbol.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SymbolDividends {
    /// Canonical ticker.
    symbol: String,
    /// Dividends, newest first. All dividends of the oldest day are included, so the list may be longer than
    /// `per_symbol`.
    dividends: Vec<DividendRow>,
    /// True if there are older dividends in the range.
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
    /// True if there are older dividends of the symbol in the range.
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
    /// Newest records of each symbol, in request order. The request counts as one call for any number of symbols.
    get "/v1/bulk/dividends", tag "Bulk", returns "Dividends in request order",
    dividends(Access<Professional, BulkDividendsParameters>) -> Bulk<SymbolDividends> { respond_streaming(stream_dividends) }
}

async fn stream_dividends(
    context: HandlerContext<BulkDividendsParameters>,
    outlet: ResponseWriter,
) -> Result<FinishedBody, ApiError> {
    let asked = &context.parameters;
    let start = asked.start_date.unwrap_or_else(|| context.first_day_of_tier_history());
    let statuses = selected_statuses(None, asked.include_projected);
    let depth = asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier });
    let past = context.find_version(asked.knowledge.as_ref()).await?;
    let of_past = async |securities: Vec<Arc<PastSecurity>>| {
        let is_asked = |row: &DividendRow| {
            start <= row.ex_date
                && asked.end_date.is_none_or(|end| row.ex_date <= end)
                && statuses.contains(&row.status)
        };
        let mut all = Vec::with_capacity(securities.len());
        for security in securities {
            let symbol = security.symbol().to_owned();
            let rows = security.rows.dividends.iter().filter(|row| is_asked(row)).cloned().collect();
            let rows = sort_newest_first(&context.generation, rows).await?;
            all.push(SymbolDividends::newest(&symbol, rows, asked.per_symbol, start));
        }
        Ok::<_, ApiError>(all)
    };
    let asked = BulkQuery {
        symbols: &asked.symbols,
        output: &asked.output,
        statement: DIVIDENDS,
        parameters: vec![&start, &asked.end_date, &asked.per_symbol, &statuses],
        depth,
        past,
        known_at: context.known_at,
    };
    let by_symbol = |symbols: &[&str], rows: &[Row]| dividends_by_symbol(symbols, rows, start);
    stream_bulk(&context.generation, outlet, asked, by_symbol, of_past, render_dividends).await
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

    /// Selects the newest `per_symbol` dividends. `rows` must be sorted newest first. All dividends of the oldest
    /// selected day are included.
    fn newest(symbol: &str, rows: Vec<DividendRow>, per_symbol: i64, start: NaiveDate) -> Self {
        // A limit above `usize::MAX` has no effect.
        let limit = usize::try_from(per_symbol).unwrap_or(usize::MAX);
        let oldest = limit.checked_sub(1).and_then(|last| rows.get(last)).map(|row| row.ex_date);
        let count = rows.iter().filter(|row| oldest.is_none_or(|oldest| oldest <= row.ex_date)).count();
        let has_more = count < rows.len();
        let mut newest = Self::empty(symbol);
        rows.into_iter().take(count).for_each(|row| newest.add_older(row, has_more, start));
        newest
    }

    /// Adds a dividend that is not newer than the dividends added before. If `has_more`, the follow-up request ends on
    /// the day before the ex-date of this dividend.
    fn add_older(&mut self, dividend: DividendRow, has_more: bool, start: NaiveDate) {
        self.has_more = has_more;
        self.start_date = has_more.then_some(start);
        self.end_date = dividend.ex_date.pred_opt().filter(|_| has_more);
        self.dividends.push(dividend);
    }
}

/// Sorts dividends newest first, in the same order as the statement [`DIVIDENDS`].
async fn sort_newest_first(
    generation: &ServedGeneration,
    rows: Vec<DividendRow>,
) -> Result<Vec<DividendRow>, QueryError> {
    let keys: Vec<_> = rows.iter().map(|row| (row.r#type.to_string(), row.id.clone())).collect();
    let ranks = rank_dividends(generation, &keys).await?;
    let mut ranked: Vec<(i64, DividendRow)> = ranks.into_iter().zip(rows).collect();
    ranked.sort_by(|(rank, row), (other_rank, other)| {
        other.ex_date.cmp(&row.ex_date).then_with(|| rank.cmp(other_rank))
    });
    Ok(ranked.into_iter().map(|(_, row)| row).collect())
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
