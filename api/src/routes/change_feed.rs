//! Change feed for `updated_since`: changed rows in commit order.
//!
//! Invariant: a client that applies all pages in order and continues from `sync_from` has the rows of a full download.
//! Deleted rows appear as cancelled.

use chrono::{DateTime, Utc};
use market::row::{DividendRow, SplitRow};
use serde::Serialize;
use serde_json::json;
use store::FromRow;

use crate::answer::{Context, Rendered};
use crate::error::ApiError;
use crate::parameters::{Output, Page, ParameterError, Since, SymbolList};
use crate::read::lookup::{self, Named};
use crate::read::projection::{Generation, Version};
use crate::render::envelope::{Depth, ListMeta};
use crate::render::rows;

const SINCE: &str = include_str!("../../queries/changes/since.sql");

/// Row type with a change feed.
pub(crate) trait Followed: FromRow + Serialize {
    /// Statement that selects the changed rows.
    const CHANGES: &'static str;
    fn id(&self) -> Option<&str>;
}

impl Followed for DividendRow {
    const CHANGES: &'static str = include_str!("../../queries/changes/dividends.sql");
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

impl Followed for SplitRow {
    const CHANGES: &'static str = include_str!("../../queries/changes/splits.sql");
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }
}

/// Request for changes.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) since: &'a Since,
    /// `None` for the whole market.
    pub(crate) symbols: Option<&'a SymbolList>,
    pub(crate) page: &'a Page,
    pub(crate) output: &'a Output,
}

/// Page of changed rows.
pub(crate) async fn changed<T: Followed, P>(
    context: &Context<P>,
    asked: Asked<'_>,
) -> Result<Rendered, ApiError> {
    let start = Start::read(&context.generation, asked.since).await?;
    let page = asked.page.carrying(Some(start.sync_from));
    let Named { known, missing } = lookup::named(&context.generation, asked.symbols).await?;
    // Deleted rows of unknown or renamed symbols are included under the written spelling.
    let written =
        asked.symbols.into_iter().flat_map(|list| &list.0).filter_map(|symbol| symbol.candidates.first());
    let symbols: Option<Vec<String>> = known.map(|known| known.into_iter().chain(written.cloned()).collect());
    let floor = context.floor();
    let position: Option<i64> = page.after(0).and_then(|position| position.parse().ok());
    let live: Option<bool> = page.after(1).and_then(|live| live.parse().ok());
    let (symbol, id, probe) = (page.after(2), page.after(3), page.limit + 1);
    let rows = lookup::query(
        &context.generation,
        T::CHANGES,
        &[&symbols, &floor, &start.position, &position, &live, &symbol, &id, &probe],
    )
    .await?;
    let version = Version::of(rows.first().ok_or_else(|| lookup::unversioned(&context.generation))?)?;
    let present =
        rows.iter().filter(|row| matches!(row.try_get::<_, Option<i64>>("change_position"), Ok(Some(_))));
    let mut changes = present.map(Change::<T>::of).collect::<Result<Vec<_>, _>>()?;
    let next_cursor = page.cut(&mut changes, &context.app.signer, Change::key);
    let mut meta = ListMeta::new(&version, changes.len(), page.limit, next_cursor.clone());
    if asked.symbols.is_some() {
        meta.miss(missing);
    }
    meta.reach(Some(Depth { from: floor, tier: context.tier }), context.today);
    meta.sync_from = page.sync_from;
    let rows: Vec<T> = changes.into_iter().map(|change| change.row).collect();
    Ok(Rendered { body: rows::list(asked.output, &rows, &meta)?, version, next_cursor })
}

/// Row with its position in the change feed.
struct Change<T> {
    position: i64,
    live: bool,
    symbol: String,
    row: T,
}

impl<T: Followed> Change<T> {
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
struct Start {
    position: i64,
    /// Position after all current changes, for the client's next request.
    sync_from: String,
}

impl Start {
    async fn read(generation: &Generation, since: &Since) -> Result<Self, ApiError> {
        let instant = match since {
            Since::Instant(instant) => Some(*instant),
            Since::Position { .. } => None,
        };
        let rows = lookup::query(generation, SINCE, &[&instant]).await?;
        let row = rows.first().ok_or_else(|| lookup::unversioned(generation))?;
        if !row.try_get::<_, bool>("served")? {
            return Err(ApiError::Unavailable("another generation is served from now on".to_owned()));
        }
        let (journal, begins): (String, i64) = (row.try_get("journal")?, row.try_get("begins")?);
        let (begun_at, now): (DateTime<Utc>, i64) = (row.try_get("begun_at")?, row.try_get("position")?);
        let position = match since {
            Since::Position { journal: named, .. } if *named != journal => {
                return Err(anew("is of another database of the service", begun_at));
            }
            Since::Position { position, .. } => *position,
            Since::Instant(instant) if *instant < begun_at => {
                return Err(anew("is before the first change that is told", begun_at));
            }
            Since::Instant(_) => row.try_get::<_, Option<i64>>("before")?.unwrap_or(begins),
        };
        if position < begins {
            return Err(anew("is before the first change that is told", begun_at));
        }
        // A replica may lag behind the server that issued the position.
        Ok(Self { position, sync_from: format!("{journal}.{}", now.max(position)) })
    }
}

/// 400 for a client that must download everything again.
fn anew(what: &str, begun_at: DateTime<Utc>) -> ApiError {
    ApiError::Parameters(vec![ParameterError {
        param: "updated_since".to_owned(),
        error: format!("{what}: get everything anew, and go on from that answer's sync_from"),
        allowed: Some(json!({ "minimum": begun_at })),
    }])
}
