//! Change feed for `updated_since`: changed rows in commit order, from a place in the journal. A deleted row has the status
//! `cancelled`.
//!
//! Invariant: a client that applies all pages in order, and later continues from `sync_from`, has the same rows as
//! after a full download.

use chrono::{DateTime, Utc};
use serde_json::json;
use store::ids::JournalPosition;

use crate::answer::{HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{JournalPlace, Output, Page, ParameterError, SymbolList, SyncPoint};
use crate::read::changes::{ChangedRow, ListedSecurities, TrackedRow};
use crate::read::{DataVersion, ServedGeneration, lookup};
use crate::render::envelope::{Depth, ListMeta};
use crate::render::rows;

/// Query for the rows that changed since a synchronization point. This point is an instant, the `sync_from` of a
/// response, or the id of a stream event.
#[derive(Debug)]
pub(crate) struct ChangeQuery<'a> {
    pub(crate) since: &'a SyncPoint,
    /// Symbols of the query; `None` for the whole market.
    pub(crate) symbols: Option<&'a SymbolList>,
    pub(crate) page: &'a Page,
    pub(crate) output: &'a Output,
}

/// Renders a page of changed rows.
pub(crate) async fn render_changes<T: TrackedRow, P>(
    context: &HandlerContext<P>,
    asked: ChangeQuery<'_>,
) -> Result<RenderedBody, ApiError> {
    let start = JournalStart::find(&context.generation, Some(asked.since), "updated_since").await?;
    let position = start.place.completed_position();
    // A replica may serve data from before the client's position in the journal. `sync_from` must not go back, so it is
    // the greater of the client's position and the position of the served data.
    let sync_from = format!("{}.{}", start.journal, start.now.max(position));
    let page = asked.page.with_sync_from(Some(sync_from));
    let missing = lookup::resolve_symbol_list(&context.generation, asked.symbols).await?.missing;
    let securities = match asked.symbols {
        Some(list) => Some(ListedSecurities::find(&context.generation, list).await?),
        None => None,
    };
    let symbols = securities.as_ref().map(ListedSecurities::all);
    let floor = context.first_day_of_tier_history();
    let last: Option<JournalPosition> = page.after_value(0).and_then(|position| position.parse().ok());
    let live: Option<bool> = page.after_value(1).and_then(|live| live.parse().ok());
    let (symbol, id, probe) = (page.after_value(2), page.after_value(3), page.limit + 1);
    let rows = lookup::run_query(
        &context.generation,
        T::CHANGES,
        &[&symbols, &floor, &position, &last, &live, &symbol, &id, &probe],
    )
    .await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let mut changes = ChangedRow::<T>::read_all(&rows)?;
    let signer = context.app.signer.of_response(version.to_exact_text());
    let next_cursor = page.split_off_next_cursor(&mut changes, &signer, change_key);
    let mut meta = ListMeta::new(&version, changes.len(), page.limit, next_cursor.clone());
    meta.set_missing(asked.symbols.as_ref().map(|_| missing));
    meta.set_depth(Some(Depth { from: floor, tier: context.tier }), context.today);
    meta.sync_from = page.sync_from;
    let is_former =
        |symbol: &String| securities.as_ref().is_some_and(|listed| listed.former.contains(symbol));
    let rows = changes.into_iter().map(|change| {
        let is_removed = is_former(&change.symbol);
        if is_removed { change.row.into_cancelled() } else { change.row }
    });
    let rows: Vec<T> = rows.collect();
    Ok(RenderedBody { body: rows::render_list(asked.output, &rows, &meta)?, version, next_cursor })
}

fn change_key<T: TrackedRow>(change: &ChangedRow<T>) -> Vec<Option<String>> {
    let id = change.row.id().unwrap_or_default().to_owned();
    [change.position.to_string(), change.live.to_string(), change.symbol.clone(), id].map(Some).to_vec()
}

const SINCE: &str = include_str!("../../../queries/changes/since.sql");

/// Place in the journal from which a client continues, and the journal position of the served data.
#[derive(Debug)]
pub(crate) struct JournalStart {
    /// Id of the journal, the first part of every synchronization point.
    pub(crate) journal: String,
    /// Place in the journal after the last change that the client has.
    pub(crate) place: JournalPlace,
    /// Journal position of the served data.
    pub(crate) now: JournalPosition,
}

impl JournalStart {
    /// Finds the place after `since`. Without `since`, finds the end of the journal. `parameter` is the parameter name
    /// in error messages.
    ///
    /// # Errors
    /// [`ApiError::Parameters`] if `since` belongs to another journal or is ahead of this journal, or if changes after
    /// `since` are no longer in this journal. [`ApiError::Unavailable`] if the served generation changed during the request.
    pub(crate) async fn find(
        generation: &ServedGeneration,
        since: Option<&SyncPoint>,
        parameter: &str,
    ) -> Result<Self, ApiError> {
        let instant = match since {
            Some(SyncPoint::Instant(instant)) => Some(*instant),
            Some(SyncPoint::Place { .. }) | None => None,
        };
        let rows = lookup::run_query(generation, SINCE, &[&instant]).await?;
        let row = lookup::first_row(generation, &rows)?;
        if !row.try_get::<_, bool>("served")? {
            return Err(ApiError::Unavailable("the served generation changed during the request".to_owned()));
        }
        let (journal, begins): (String, JournalPosition) = (row.try_get("journal")?, row.try_get("begins")?);
        let (begun_at, now): (DateTime<Utc>, JournalPosition) =
            (row.try_get("begun_at")?, row.try_get("position")?);
        let resync = |what: &str| resync_error(parameter, what, begun_at);
        let place = match since {
            None => JournalPlace::after_commit(now),
            Some(SyncPoint::Place { journal: named, .. }) if *named != journal => {
                return Err(resync("belongs to another database of the service"));
            }
            Some(SyncPoint::Place { place, .. }) => place.clone(),
            Some(SyncPoint::Instant(instant)) if *instant < begun_at => {
                return Err(resync("is before the first recorded change"));
            }
            Some(SyncPoint::Instant(_)) if row.try_get("is_future")? => {
                let error = ParameterError::new(parameter, "is in the future", None);
                return Err(ApiError::Parameters(vec![error]));
            }
            Some(SyncPoint::Instant(_)) => {
                let before: Option<JournalPosition> = row.try_get("before")?;
                JournalPlace::after_commit(before.unwrap_or(begins))
            }
        };
        if place.completed_position() < begins {
            return Err(resync("is before the first recorded change"));
        }
        if place.position > now {
            return Err(resync("is after the last recorded change"));
        }
        Ok(Self { journal, place, now })
    }
}

/// Error 400 for a client that must download all data again.
fn resync_error(parameter: &str, what: &str, begun_at: DateTime<Utc>) -> ApiError {
    let error =
        format!("{what}: download everything again, and continue from the sync_from of that response");
    let allowed = json!({ "minimum": begun_at });
    ApiError::Parameters(vec![ParameterError::new(parameter, error, Some(allowed))])
}
