//! Page of the dividends or splits of one security. A request asks for one of three kinds of rows: rows of the current
//! data version, rows of an earlier data version, or the rows that changed since an earlier response.

use std::sync::Arc;

use chrono::NaiveDate;
use market::metrics::DerivedRows;

use crate::answer::{HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, Page, PathSymbol, Sortable, SyncPoint};
use crate::read::changes::TrackedRow;
use crate::read::lookup::{self, SymbolRows};
use crate::read::past_version::PastVersion;
use crate::render::envelope::Warning;
use crate::routes::changes::change_feed::{ChangeQuery, render_changes};

/// Query for the records of one security.
pub(super) struct RecordsQuery<'a, T> {
    /// SQL statement for all served rows of the security. Its parameter is the spellings of the symbol.
    pub(super) statement: &'static str,
    /// All derived rows of the security.
    pub(super) derived: fn(&DerivedRows) -> &[T],
    /// Kind of the records: `dividend` or `split`. The table `quarantine` uses the same names.
    pub(super) kind: &'static str,
    pub(super) symbol: &'a PathSymbol,
    /// First ex-date; `None` for the start of the tier's history.
    pub(super) start_date: Option<NaiveDate>,
    pub(super) updated_since: Option<&'a SyncPoint>,
    pub(super) knowledge: Option<&'a Knowledge>,
    pub(super) page: &'a Page,
    pub(super) output: &'a Output,
}

/// Renders a page of the records that `accepts` selects.
pub(super) async fn render_records<T: TrackedRow + Sortable + Clone, P>(
    context: &HandlerContext<P>,
    query: RecordsQuery<'_, T>,
    accepts: impl Fn(&T) -> bool,
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
    let live = async {
        let found = lookup::find_rows(&context.generation, query.statement, symbol).await?;
        Ok::<_, ApiError>((found.version, found))
    };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, symbol).await?;
        Ok::<_, ApiError>(SymbolRows {
            version: past.version(),
            quarantined_count: security.count_quarantined(query.kind),
            rows: (query.derived)(&security.rows).to_vec(),
            sync_from: Some(past.sync_from.clone()),
        })
    };
    let (_, found) = context.read_as_known(query.knowledge, live, past).await?;
    let page = page.with_sync_from(found.sync_from);
    let rows = found.rows.iter().filter(|row| accepts(row));
    context.render_page(output, &page, found.version, rows, |meta| {
        meta.sync_from = page.sync_from.clone();
        meta.set_depth(context.depth_without(query.start_date), context.today);
        meta.warnings.extend(Warning::quarantined(found.quarantined_count));
    })
}
