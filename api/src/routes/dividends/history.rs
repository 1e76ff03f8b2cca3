//! `GET /v1/dividends/history`: dividend records of up to 50 symbols, or the changes since an earlier response.

use std::sync::Arc;

use chrono::NaiveDate;
use market::event::DividendType;
use market::row::{DividendRow, DividendStatus, TableRow};
use tokio_postgres::types::ToSql;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::auth::tier::Tier;
use crate::error::ApiError;
use crate::parameters::{
    DateRange, Direction, Knowledge, OTHER_DATE_PARAMETERS, OtherDateRanges, Output, Page, PageOptions,
    SymbolList, SyncPoint, parameters,
};
use crate::read::DataVersion;
use crate::read::lookup::{self, ResolvedSymbols};
use crate::read::past_version::PastVersion;
use crate::render::envelope::{Depth, List, ListMeta, Warning};
use crate::render::rows;
use crate::routes::changes::change_feed::{ChangeQuery, render_changes};
use crate::routes::endpoint;
use crate::routes::past::security::rank_dividends;
use crate::routes::stocks::dividends::{FILTERS, STATUSES, selected_statuses};

const HISTORY: &str = include_str!("../../../queries/dividends/history.sql");
const HISTORY_ASCENDING: &str = include_str!("../../../queries/dividends/history_ascending.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["ex_date"],
    order: &[("ex_date", Direction::Descending)],
};

parameters! {
    /// Parameters of the dividend history.
    pub(crate) struct HistoryParameters by reader {
        /// Comma-separated symbols (at most 50). Unknown symbols are listed in `meta.missing`. The list may be omitted
        /// only with `updated_since`: the response then has the changes of the whole market (Professional only).
        symbols: Option<SymbolList> = reader.read_symbols(50),
        /// `meta.sync_from` of an earlier response, or an instant. Returns only the rows that changed since then, in
        /// the order of the changes. Deleted rows have the status `cancelled`. Cannot be combined with date, type or
        /// status filters, `include_projected` or `sort`.
        updated_since: Option<SyncPoint> =
            reader.read_updated_since(&[FILTERS.as_slice(), &OTHER_DATE_PARAMETERS].concat()),
        /// First ex-date. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = {
            reader.require_either("symbols", "updated_since");
            reader.read_day_of_history("start_date")
        },
        /// Last ex-date. Default: no limit, so that declared future ex-dates are included.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Dividend types as declared, comma-separated.
        r#type: Option<Vec<DividendType>> = reader.read_words("type", DividendType::ALL),
        /// Statuses, comma-separated: declared, paid, cancelled. Default: declared and paid.
        status: Option<Vec<DividendStatus>> = reader.read_words("status", STATUSES),
        /// Includes dividends that are expected in the next 12 months but not declared. Their amounts and payment
        /// dates are estimates.
        include_projected: bool = reader.read_bool_or("include_projected", false),
        other_days: OtherDateRanges = reader.read_other_date_ranges(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(DividendRow::COLUMNS),
    }

    const TIER_MATTERS: bool = true;

    fn needs(&self) -> Option<(Tier, &'static str)> {
        (self.symbols.is_none() && self.updated_since.is_some())
            .then_some((Tier::Professional, "market_changes"))
    }
}

endpoint! {
    /// Dividend history of up to 50 symbols
    ///
    /// Newest first, including declared future records. Cancelled records are returned only with `status=cancelled`.
    get "/v1/dividends/history", tag "Dividends", returns "A page of dividend records",
    history(Access<Free, HistoryParameters>) -> List<DividendRow> { respond(page) }
}

async fn page(context: HandlerContext<HistoryParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    if let Some(since) = &asked.updated_since {
        let (symbols, page, output) = (asked.symbols.as_ref(), &asked.page, &asked.output);
        return render_changes::<DividendRow, _>(&context, ChangeQuery { since, symbols, page, output })
            .await;
    }
    let start = asked.start_date.unwrap_or_else(|| context.first_day_of_tier_history());
    let past = async |past| find_past(&context, past, start).await;
    let (version, found) =
        context.read_as_known(asked.knowledge.as_ref(), find_served(&context, start), past).await?;
    let HistoryRows { mut rows, held, sync_from, missing } = found;
    let page = asked.page.with_sync_from(sync_from);
    let signer = context.app.signer.of_response(version.to_exact_text());
    let next_cursor = page.split_off_next_cursor(&mut rows, &signer, key);
    let mut meta = ListMeta::new(&version, rows.len(), asked.page.limit, next_cursor.clone());
    meta.known_at = context.known_at;
    meta.sync_from = page.sync_from;
    meta.set_missing(missing);
    meta.warnings.extend(Warning::quarantined(held));
    meta.set_depth(
        asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier }),
        context.today,
    );
    Ok(RenderedBody { body: rows::render_list(&asked.output, &rows, &meta)?, version, next_cursor })
}

/// Rows of a page, and one further row if another page follows.
struct HistoryRows {
    rows: Vec<DividendRow>,
    /// Number of quarantined dividends of the requested symbols.
    held: i64,
    sync_from: Option<String>,
    /// Unknown symbols.
    missing: Vec<String>,
}

/// Reads the rows of the served generation.
async fn find_served(
    context: &HandlerContext<HistoryParameters>,
    start: NaiveDate,
) -> Result<(DataVersion, HistoryRows), ApiError> {
    let asked = &context.parameters;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols.as_ref()).await?;
    let OtherDateRanges { declared, record } = asked.other_days;
    let statuses = selected_statuses(asked.status.as_ref(), asked.include_projected);
    let after: Option<NaiveDate> = asked.page.after_value(0).and_then(|day| day.parse().ok());
    let (symbol, kind, id) =
        (asked.page.after_value(1), asked.page.after_value(2), asked.page.after_value(3));
    let probe = asked.page.limit + 1;
    let statement = if asked.page.direction() == Direction::Ascending { HISTORY_ASCENDING } else { HISTORY };
    let parameters: [&(dyn ToSql + Sync); 14] = [
        &known,
        &start,
        &asked.end_date,
        &asked.r#type,
        &statuses,
        &after,
        &symbol,
        &kind,
        &id,
        &probe,
        &declared.start,
        &declared.end,
        &record.start,
        &record.end,
    ];
    let rows = lookup::run_query(&context.generation, statement, &parameters).await?;
    let first = lookup::first_row(&context.generation, &rows)?;
    let found = HistoryRows {
        held: first.try_get("held")?,
        sync_from: first.try_get("sync_from")?,
        missing,
        rows: lookup::rows_with_symbol(&rows)?,
    };
    Ok((DataVersion::from_row(first)?, found))
}

fn key(row: &DividendRow) -> Vec<Option<String>> {
    let id = row.id.clone().unwrap_or_default();
    [row.ex_date.to_string(), row.symbol.clone(), row.r#type.to_string(), id].into_iter().map(Some).collect()
}

/// Sort key for rows with the same ex-date: symbol, then the rank by type and id.
type PlaceOfDay = (String, i64);

/// Derives the rows of one page at an earlier data version. They have the same order as rows from the served tables.
/// One further row is included if another page follows.
async fn find_past(
    context: &HandlerContext<HistoryParameters>,
    past: Arc<PastVersion>,
    start: NaiveDate,
) -> Result<HistoryRows, ApiError> {
    let asked = &context.parameters;
    let symbols = asked.symbols.clone().unwrap_or_default();
    let (securities, missing) = context.past_securities(&past, &symbols).await?;
    let held = securities.iter().map(|security| security.count_quarantined("dividend")).sum();
    let rows = securities.iter().flat_map(|security| &security.rows.dividends);
    let rows: Vec<DividendRow> = rows.filter(|row| asked.accepts(row, start)).cloned().collect();
    let rows = select_page(context, rows).await?;
    Ok(HistoryRows { rows, held, sync_from: Some(past.sync_from.clone()), missing })
}

async fn select_page(
    context: &HandlerContext<HistoryParameters>,
    rows: Vec<DividendRow>,
) -> Result<Vec<DividendRow>, ApiError> {
    let page = &context.parameters.page;
    let after = |place: usize| page.after_value(place).unwrap_or_default().to_owned();
    let keys = rows.iter().map(|row| (row.r#type.to_string(), Some(row.id.clone().unwrap_or_default())));
    // The ranks of different queries cannot be compared. The query therefore also ranks the last row of the previous
    // page.
    let keys: Vec<_> = keys.chain([(after(2), Some(after(3)))]).collect();
    let mut ranks = rank_dividends(&context.generation, &keys).await?;
    let last_rank = ranks.pop().unwrap_or_default();
    let last_day: Option<NaiveDate> = page.after_value(0).and_then(|day| day.parse().ok());
    let last: PlaceOfDay = (after(1), last_rank);
    let is_descending = page.direction() == Direction::Descending;
    let is_later = |day: NaiveDate, place: &PlaceOfDay| match last_day {
        None => true,
        Some(last_day) if day == last_day => *place > last,
        Some(last_day) => (day < last_day) == is_descending,
    };
    let placed = rows.into_iter().zip(ranks).map(|(row, rank)| ((row.symbol.clone(), rank), row));
    let mut placed: Vec<(PlaceOfDay, DividendRow)> =
        placed.filter(|(place, row)| is_later(row.ex_date, place)).collect();
    placed.sort_by(|(place, row), (other_place, other)| {
        let by_day = row.ex_date.cmp(&other.ex_date);
        let by_day = if is_descending { by_day.reverse() } else { by_day };
        by_day.then_with(|| place.cmp(other_place))
    });
    placed.truncate(page.row_limit() + 1);
    Ok(placed.into_iter().map(|(_, row)| row).collect())
}

impl HistoryParameters {
    /// True if the filters accept a row.
    fn accepts(&self, row: &DividendRow, start: NaiveDate) -> bool {
        let statuses = selected_statuses(self.status.as_ref(), self.include_projected);
        start <= row.ex_date
            && self.end_date.is_none_or(|end| row.ex_date <= end)
            && self.r#type.as_ref().is_none_or(|types| types.contains(&row.r#type))
            && statuses.contains(&row.status)
            && includes(self.other_days.declared, row.declaration_date)
            && includes(self.other_days.record, row.record_date)
    }
}

/// True if the range includes a date. If the range has a bound, it does not include an unknown date (`None`).
fn includes(range: DateRange, date: Option<NaiveDate>) -> bool {
    range.start.is_none_or(|start| date.is_some_and(|date| start <= date))
        && range.end.is_none_or(|end| date.is_some_and(|date| date <= end))
}
