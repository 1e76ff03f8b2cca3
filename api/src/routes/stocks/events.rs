//! `GET /v1/stocks/{symbol}/events`: ticker changes, corporate actions and special dividends of one security.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::NaiveDate;
use market::identity::Identity;
use market::metrics::revisions::ticker_events;
use market::row::{JsonColumn, SecurityEvent, SecurityEventType, SplitStatus, TableRow};

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, Output, Page, PageOptions, RequestedSymbol, SortValue, Sortable, parameters,
};
use crate::read::lookup::{self, PastVersion};
use crate::read::past_securities::PastSecurity;
use crate::read::{DataVersion, QueryError, ServedGeneration};
use crate::render::envelope::List;
use crate::routes::endpoint;

const EVENTS: &str = include_str!("../../../queries/stocks/events.sql");
const PAGING: PageOptions =
    PageOptions { default_limit: 50, most: 200, keys: &["date"], order: &[("date", Direction::Descending)] };

parameters! {
    /// Parameters of a symbol's events.
    pub(crate) struct EventsParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// First date. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last date. Default: no limit, so that announced future events are included.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Types of events, comma-separated.
        r#type: Option<Vec<SecurityEventType>> = reader.read_words("type", SecurityEventType::ALL),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(SecurityEvent::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
}

impl Sortable for SecurityEvent {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        let name = self.id.as_deref().or(self.to_symbol.as_deref()).unwrap_or_default();
        Cow::Owned(format!("{}/{name}", self.r#type))
    }
}

endpoint! {
    /// Security events
    ///
    /// Renames, mergers, delistings, splits, spin-offs, rights issues, distributions of shares of another class and
    /// special dividends in one list, newest first. A spin-off has a `ratio` if the feed reports it as a split, or an
    /// `amount` if the feed reports its value.
    get "/v1/stocks/{symbol}/events", tag "Stocks", returns "A page of events",
    events(Access<Free, EventsParameters>) -> List<SecurityEvent> { respond(render) }
}

async fn render(context: HandlerContext<EventsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let live = async { Ok::<_, ApiError>(find_events(&context.generation, &asked.symbol).await?) };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, &asked.symbol).await?;
        Ok::<_, ApiError>(past_events(&security, past.as_of))
    };
    let (version, events) = context.read_as_known(asked.knowledge.as_ref(), live, past).await?;
    let start = context.first_day(asked.start_date);
    let rows = events.iter().filter(|event| {
        start <= event.date
            && asked.end_date.is_none_or(|last| event.date <= last)
            && asked.r#type.as_ref().is_none_or(|types| types.contains(&event.r#type))
    });
    context.render_page(&asked.output, &asked.page, version, rows, |meta| {
        meta.set_depth(context.depth_without(asked.start_date), context.today);
    })
}

/// Ticker events of a security, according to its reference record.
fn events_of_record(identity: Option<&Identity>, as_of: Option<NaiveDate>) -> Vec<SecurityEvent> {
    let reference = identity.and_then(|identity| identity.security.as_ref()).zip(as_of);
    reference.map_or_else(Vec::new, |(found, as_of)| ticker_events(&found.record, as_of))
}

/// Events of a security at an earlier version, in any order.
fn past_events(security: &PastSecurity, as_of: Option<NaiveDate>) -> Vec<SecurityEvent> {
    let rows = &security.rows;
    let mut events = events_of_record(Some(&security.identity), as_of);
    let live = rows.splits.iter().filter(|split| split.status != SplitStatus::Cancelled);
    events.extend(live.map(SecurityEvent::from));
    events.extend(rows.dividends.iter().filter_map(|row| SecurityEvent::of_dividend(row, as_of)));
    events
}

/// Finds the events of a symbol at the current version, in any order.
async fn find_events(
    generation: &ServedGeneration,
    symbol: &RequestedSymbol,
) -> Result<(DataVersion, Vec<SecurityEvent>), QueryError> {
    let rows = lookup::run_query(generation, EVENTS, &[&symbol.candidates]).await?;
    let first = lookup::first_row(generation, &rows)?;
    let canonical = first.try_get::<_, Option<&str>>("canonical")?;
    canonical.ok_or_else(|| lookup::unknown_symbol_error(symbol))?;
    let version = DataVersion::from_row(first)?;
    let identity: Option<JsonColumn<Identity>> = first.try_get("identity")?;
    let mut events: Vec<SecurityEvent> = lookup::rows_with_symbol(&rows)?;
    events.extend(events_of_record(identity.as_ref().map(|identity| &identity.0), version.as_of));
    Ok((version, events))
}
