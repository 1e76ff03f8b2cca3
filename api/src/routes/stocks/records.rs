//! Page of the dividends or splits of one security. The rows are current rows, rows at an earlier data version, or the
//! changes since an earlier response.

use std::sync::Arc;

use chrono::NaiveDate;
use market::metrics::DerivedRows;
use tokio_postgres::types::ToSql;

use crate::answer::{HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, Page, PathSymbol, Sortable, SyncPoint};
use crate::read::changes::TrackedRow;
use crate::read::lookup::{self, SymbolRows};
use crate::read::past_version::PastVersion;
use crate::render::envelope::{Depth, Warning};
use crate::routes::changes::change_feed::{ChangeQuery, render_changes};

/// Query for the records of one security.
pub(super) struct RecordsQuery<'a> {
    /// SQL statement for the served rows. Its parameters are, in order: the spellings of the symbol, the first ex-date,
    /// and `filters`.
    pub(super) statement: &'static str,
    pub(super) filters: &'a [&'a (dyn ToSql + Sync)],
    /// Kind of the records, as spelled in the table `quarantine`.
    pub(super) kind: &'static str,
    pub(super) symbol: &'a PathSymbol,
    /// First ex-date; `None` for the start of the tier's history.
    pub(super) start_date: Option<NaiveDate>,
    pub(super) updated_since: Option<&'a SyncPoint>,
    pub(super) knowledge: Option<&'a Knowledge>,
    pub(super) page: &'a Page,
    pub(super) output: &'a Output,
}

/// Renders a page of records. For an earlier data version, `select` chooses the requested rows from the derived rows.
/// Its second argument is the first ex-date of the request.
pub(super) async fn render_records<T: TrackedRow + Sortable, P>(
    context: &HandlerContext<P>,
    query: RecordsQuery<'_>,
    select: impl FnOnce(&DerivedRows, NaiveDate) -> Vec<T>,
) -> Result<RenderedBody, ApiError> {
    let RecordsQuery { symbol, page, output, .. } = query;
    if let Some(since) = query.updated_since {
        let symbols = symbol.to_list();
        let found = lookup::resolve_symbols(&context.generation, &symbols).await?;
        if found.iter().all(Option::is_none) {
            return Err(lookup::unknown_symbol_error(symbol).into());
        }
        let query = ChangeQuery { since, symbols: Some(&symbols), page, output };
        return render_changes::<T, _>(context, query).await;
    }
    let start = query.start_date.unwrap_or_else(|| context.first_day_of_tier_history());
    let live = async {
        let parameters = [[&start as &(dyn ToSql + Sync)].as_slice(), query.filters].concat();
        let found = lookup::find_rows(&context.generation, query.statement, symbol, &parameters).await?;
        Ok::<_, ApiError>((found.version, found))
    };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, symbol).await?;
        Ok::<_, ApiError>(SymbolRows {
            version: past.version(),
            quarantined_count: security.count_quarantined(query.kind),
            rows: select(&security.rows, start),
            sync_from: Some(past.sync_from.clone()),
        })
    };
    let (_, found) = context.read_as_known(query.knowledge, live, past).await?;
    let depth = query.start_date.is_none().then_some(Depth { from: start, tier: context.tier });
    let page = page.with_sync_from(found.sync_from);
    context.render_page(output, &page, found.version, &found.rows, |meta| {
        meta.sync_from = page.sync_from.clone();
        meta.set_depth(depth, context.today);
        meta.warnings.extend(Warning::quarantined(found.quarantined_count));
    })
}
