//! Change feed for `updated_since`: changed rows in commit order.
//!
//! Invariant: a client that applies all pages in order, and continues from `sync_from`, has the rows of a full
//! download. Deleted rows appear as cancelled.

use chrono::{DateTime, Utc};
use market::row::{DividendRow, SplitRow};
use serde::Serialize;
use serde_json::json;
use store::FromRow;
use store::ids::JournalPosition;

use crate::answer::{HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Output, Page, ParameterError, SymbolList, SyncPoint};
use crate::read::lookup::{self, ResolvedSymbols};
use crate::read::{DataVersion, ServedGeneration};
use crate::render::envelope::{Depth, ListMeta};
use crate::render::rows;

const SINCE: &str = include_str!("../../queries/changes/since.sql");

/// Row type with a change feed.
pub(crate) trait ChangeTracked: FromRow + Serialize {
    /// Statement that selects the changed rows.
    const CHANGES: &'static str;
    fn id(&self) -> Option<&str>;
}

impl ChangeTracked for DividendRow {
    const CHANGES: &'static str = include_str!("../../queries/changes/dividends.sql");
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

impl ChangeTracked for SplitRow {
    const CHANGES: &'static str = include_str!("../../queries/changes/splits.sql");
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }
}

/// Query for the rows that changed since a synchronization point.
#[derive(Debug)]
pub(crate) struct ChangeQuery<'a> {
    pub(crate) since: &'a SyncPoint,
    /// Symbols of the query; `None` for the whole market.
    pub(crate) symbols: Option<&'a SymbolList>,
    pub(crate) page: &'a Page,
    pub(crate) output: &'a Output,
}

/// Renders a page of changed rows.
pub(crate) async fn render_changes<T: ChangeTracked, P>(
    context: &HandlerContext<P>,
    asked: ChangeQuery<'_>,
) -> Result<RenderedBody, ApiError> {
    let start = FeedStart::read(&context.generation, asked.since).await?;
    let page = asked.page.with_sync_from(Some(start.sync_from));
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols).await?;
    // Also query the spelling in the request, because deleted rows may belong to unknown or renamed symbols.
    let written =
        asked.symbols.into_iter().flat_map(|list| &list.0).filter_map(|symbol| symbol.candidates.first());
    let symbols: Option<Vec<String>> = known.map(|known| known.into_iter().chain(written.cloned()).collect());
    let floor = context.first_day_of_tier_history();
    let position: Option<JournalPosition> = page.after_value(0).and_then(|position| position.parse().ok());
    let live: Option<bool> = page.after_value(1).and_then(|live| live.parse().ok());
    let (symbol, id, probe) = (page.after_value(2), page.after_value(3), page.limit + 1);
    let rows = lookup::run_query(
        &context.generation,
        T::CHANGES,
        &[&symbols, &floor, &start.position, &position, &live, &symbol, &id, &probe],
    )
    .await?;
    let version = DataVersion::from_row(
        rows.first().ok_or_else(|| lookup::missing_version_error(&context.generation))?,
    )?;
    let present = rows
        .iter()
        .filter(|row| matches!(row.try_get::<_, Option<JournalPosition>>("change_position"), Ok(Some(_))));
    let mut changes = present.map(ChangedRow::<T>::of).collect::<Result<Vec<_>, _>>()?;
    let signer = context.app.signer.of_response(version.to_exact_text());
    let next_cursor = page.split_off_next_cursor(&mut changes, &signer, ChangedRow::key);
    let mut meta = ListMeta::new(&version, changes.len(), page.limit, next_cursor.clone());
    if asked.symbols.is_some() {
        meta.set_missing(missing);
    }
    meta.set_depth(Some(Depth { from: floor, tier: context.tier }), context.today);
    meta.sync_from = page.sync_from;
    let rows: Vec<T> = changes.into_iter().map(|change| change.row).collect();
    Ok(RenderedBody { body: rows::render_list(asked.output, &rows, &meta)?, version, next_cursor })
}

/// Row with its position in the change feed.
struct ChangedRow<T> {
    position: JournalPosition,
    live: bool,
    symbol: String,
    row: T,
}

impl<T: ChangeTracked> ChangedRow<T> {
    fn of(row: &tokio_postgres::Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            position: row.try_get("change_position")?,
            live: row.try_get("change_live")?,
            symbol: row.try_get("change_symbol")?,
            row: T::from_row(row)?,
        })
    }

    fn key(&self) -> Vec<Option<String>> {
        let id = self.row.id().unwrap_or_default().to_owned();
        [self.position.to_string(), self.live.to_string(), self.symbol.clone(), id].map(Some).to_vec()
    }
}

/// Start position of a request in the journal.
struct FeedStart {
    position: JournalPosition,
    /// Synchronization point after all current changes, for the client's next request.
    sync_from: String,
}

impl FeedStart {
    async fn read(generation: &ServedGeneration, since: &SyncPoint) -> Result<Self, ApiError> {
        let instant = match since {
            SyncPoint::Instant(instant) => Some(*instant),
            SyncPoint::Position { .. } => None,
        };
        let rows = lookup::run_query(generation, SINCE, &[&instant]).await?;
        let row = rows.first().ok_or_else(|| lookup::missing_version_error(generation))?;
        if !row.try_get::<_, bool>("served")? {
            return Err(ApiError::Unavailable("the served generation changed during the request".to_owned()));
        }
        let (journal, begins): (String, JournalPosition) = (row.try_get("journal")?, row.try_get("begins")?);
        let (begun_at, now): (DateTime<Utc>, JournalPosition) =
            (row.try_get("begun_at")?, row.try_get("position")?);
        let position = match since {
            SyncPoint::Position { journal: named, .. } if *named != journal => {
                return Err(resync_error("belongs to another database of the service", begun_at));
            }
            SyncPoint::Position { position, .. } => *position,
            SyncPoint::Instant(instant) if *instant < begun_at => {
                return Err(resync_error("is before the first recorded change", begun_at));
            }
            SyncPoint::Instant(_) => row.try_get::<_, Option<JournalPosition>>("before")?.unwrap_or(begins),
        };
        if position < begins {
            return Err(resync_error("is before the first recorded change", begun_at));
        }
        // `now` may be less than `position`: a replica may lag behind the server that issued the position.
        Ok(Self { position, sync_from: format!("{journal}.{}", now.max(position)) })
    }
}

/// Error 400 for a client that must download all data again.
fn resync_error(what: &str, begun_at: DateTime<Utc>) -> ApiError {
    ApiError::Parameters(vec![ParameterError {
        param: "updated_since".to_owned(),
        error: format!("{what}: download everything again, and continue from the sync_from of that response"),
        allowed: Some(json!({ "minimum": begun_at })),
    }])
}
