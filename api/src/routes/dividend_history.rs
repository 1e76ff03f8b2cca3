//! `GET /v1/dividends/history`: dividend records of up to 50 symbols, or the changes since an earlier response.

use std::sync::Arc;

use chrono::NaiveDate;
use market::event::DividendType;
use market::row::{DividendRow, DividendStatus};
use tokio_postgres::types::ToSql;

use super::changes::change_feed::{ChangeQuery, render_changes};
use super::endpoint;
use super::stocks::records::{
    ConvertibleDividend, DIVIDEND_COLUMNS, DividendFilters, FILTERS, STATUSES, render_dividend_page,
    selected_statuses,
};
use crate::answer::{Free, HandlerContext, RenderedBody, SelectedPage};
use crate::auth::Tier;
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, OTHER_DATE_PARAMETERS, OtherDateRanges, Output, Page, PageOptions, SymbolList,
    SyncPoint, parameters,
};
use crate::read::DataVersion;
use crate::read::lookup::{self, PastVersion, ResolvedSymbols};
use crate::render::envelope::{List, ListMeta, Warning};

const HISTORY: &str = include_str!("../../queries/dividends/history.sql");
const HISTORY_ASCENDING: &str = include_str!("../../queries/dividends/history_ascending.sql");
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
        currency: Option<String> = reader.read_target_currency(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_convertible_output(&DIVIDEND_COLUMNS, currency.as_ref()),
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
    history(Access<Free, HistoryParameters>) -> List<ConvertibleDividend> { respond(page) }
}

async fn page(context: HandlerContext<HistoryParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    if let Some(since) = &asked.updated_since {
        let (symbols, page, output) = (asked.symbols.as_ref(), &asked.page, &asked.output);
        return render_changes::<DividendRow, _>(&context, ChangeQuery { since, symbols, page, output })
            .await;
    }
    let filters = DividendFilters {
        start: context.first_day(asked.start_date),
        end: asked.end_date,
        types: asked.r#type.as_ref(),
        statuses: selected_statuses(asked.status.as_ref(), asked.include_projected),
        other_days: asked.other_days,
    };
    let past = async |past| find_past(&context, past, &filters).await;
    let (version, found) =
        context.read_as_known(asked.knowledge.as_ref(), find_served(&context, &filters), past).await?;
    let HistoryRows { mut rows, held, sync_from, missing } = found;
    let page = asked.page.with_sync_from(sync_from);
    let signer = context.app.signer.of_response(version.to_exact_text());
    let next_cursor = page.split_off_next_cursor(&mut rows, &signer, key);
    let mut meta = ListMeta::new(&version, rows.len(), asked.page.limit, next_cursor);
    meta.known_at = context.known_at;
    meta.sync_from = page.sync_from;
    meta.set_missing(missing);
    meta.warnings.extend(Warning::quarantined(held));
    meta.set_depth(context.depth_without(asked.start_date), context.today);
    let page = SelectedPage { rows, meta, version };
    render_dividend_page(&context.generation, asked.currency.as_deref(), &asked.output, page).await
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
    filters: &DividendFilters<'_>,
) -> Result<(DataVersion, HistoryRows), ApiError> {
    let asked = &context.parameters;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols.as_ref()).await?;
    let OtherDateRanges { declared, record } = filters.other_days;
    let after: Option<NaiveDate> = asked.page.after_value(0).and_then(|day| day.parse().ok());
    let (symbol, kind, id) =
        (asked.page.after_value(1), asked.page.after_value(2), asked.page.after_value(3));
    let probe = asked.page.limit + 1;
    let statement = if asked.page.direction() == Direction::Ascending { HISTORY_ASCENDING } else { HISTORY };
    let parameters: [&(dyn ToSql + Sync); 14] = [
        &known,
        &filters.start,
        &filters.end,
        &filters.types,
        &filters.statuses,
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

/// Derives the rows of one page at an earlier data version, in the order of the SQL statements. One further row is
/// included if another page follows.
async fn find_past(
    context: &HandlerContext<HistoryParameters>,
    past: Arc<PastVersion>,
    filters: &DividendFilters<'_>,
) -> Result<HistoryRows, ApiError> {
    let HistoryParameters { symbols, page, .. } = &context.parameters;
    let (securities, missing) = context.past_securities(&past, &symbols.clone().unwrap_or_default()).await?;
    let held = securities.iter().map(|security| security.count_quarantined("dividend")).sum();
    let compare = |key: &[Option<String>], other: &[Option<String>]| {
        let by_day = key.first().cmp(&other.first());
        let by_day = if page.direction() == Direction::Descending { by_day.reverse() } else { by_day };
        by_day.then_with(|| key.cmp(other))
    };
    let rows = securities.iter().flat_map(|security| &security.rows.dividends);
    let mut rows: Vec<_> = rows.filter(|row| filters.accept(row)).map(|row| (key(row), row)).collect();
    if let Some(after) = &page.after {
        rows.retain(|(key, _)| compare(key, after).is_gt());
    }
    rows.sort_by(|(key, _), (other, _)| compare(key, other));
    rows.truncate(page.row_limit() + 1);
    let rows = rows.into_iter().map(|(_, row)| row.clone()).collect();
    Ok(HistoryRows { rows, held, sync_from: Some(past.sync_from.clone()), missing })
}
