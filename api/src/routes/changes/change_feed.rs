//! Change feed for `updated_since`: changed rows in commit order.
//!
//! Invariant: a client that applies all pages in order, and continues from `sync_from`, has the rows of a full
//! download. Deleted rows appear as cancelled.

use store::ids::JournalPosition;

use crate::answer::{HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Output, Page, SymbolList, SyncPoint};
use crate::read::DataVersion;
use crate::read::changes::{ChangedRow, ListedSecurities, TrackedRow};
use crate::read::lookup;
use crate::render::envelope::{Depth, ListMeta};
use crate::render::rows;
use crate::routes::changes::journal_start::JournalStart;

/// Query for the rows that changed since a synchronization point: the `sync_from` of a response, or an instant.
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
    if asked.symbols.is_some() {
        meta.set_missing(missing);
    }
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
