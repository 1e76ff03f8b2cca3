//! Page of the changes that follow a place in the journal.
//!
//! Invariant: all SQL statements for a page read the same snapshot of the served generation. The page therefore has
//! every change up to its end.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::NaiveDate;
use deadpool_postgres::{GenericClient, Transaction};
use market::identity::Identity;
use market::metrics::AdjustmentFactor;
use market::metrics::dividends::grower_lists::lists_of;
use market::metrics::revisions::ticker_events;
use market::row::{DividendRow, DividendState, JsonColumn, SplitRow, StatusRow, StockFigures, StockRow};
use store::FromRow;
use store::ids::JournalPosition;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::change::{
    Change, ChangeContent, ChangedRow, Factor, JsonForms, NoticeSelection, SecurityLists, TrackedRow,
    read_notice,
};
use crate::parameters::{ChangeKind, JournalPlace, RowKey, SymbolList};
use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};

const SINCE: &str = include_str!("../../../queries/changes/since.sql");
const EVENTS: &str = include_str!("../../../queries/changes/events.sql");
const FACTORS: &str = include_str!("../../../queries/changes/factors.sql");
const STATUSES: &str = include_str!("../../../queries/changes/statuses.sql");
const LISTS: &str = include_str!("../../../queries/changes/lists.sql");
const NOTICES: &str = include_str!("../../../queries/changes/notices.sql");
const OTHER_SYMBOLS: &str = include_str!("../../../queries/changes/other_symbols.sql");

/// Lower bound for ex-dates. It is earlier than every ex-date, so the query selects rows of all dates.
const FIRST_DAY: NaiveDate = match NaiveDate::from_ymd_opt(1, 1, 1) {
    Some(day) => day,
    None => NaiveDate::MIN,
};
/// Text that is greater than every symbol and id.
const GREATEST: &str = "\u{10ffff}";

/// Filter of changes by symbol and kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeSelection<'a> {
    /// Symbols whose changes are selected; `None` for the whole market.
    pub(crate) symbols: Option<&'a SymbolList>,
    pub(crate) kinds: &'a [ChangeKind],
    /// Selected notices; `None` for all.
    pub(crate) notices: Option<&'a NoticeSelection>,
}

/// Page of changes, in the order of delivery.
#[derive(Debug)]
pub(crate) struct ChangePage {
    /// Id of the journal. Every database has its own journal and id. The id reveals if a client's position belongs to
    /// the journal of another database, where it has another meaning.
    pub(crate) journal: String,
    pub(crate) version: DataVersion,
    pub(crate) changes: Vec<Change>,
    /// Securities that have, or once had, one of the selected symbols. The page has the changes of all these
    /// securities. `None` if the page is for the whole market.
    pub(crate) securities: Option<ListedSecurities>,
    /// Place in the journal at the end of the page. The next page continues from here.
    pub(crate) end: JournalPlace,
    /// True if more changes follow.
    pub(crate) has_more: bool,
}

impl ChangePage {
    /// Reads at most `limit` changes after a place.
    ///
    /// # Errors
    /// [`QueryError::NotServed`] if another generation is served now.
    pub(crate) async fn read(
        generation: &ServedGeneration,
        after: &JournalPlace,
        selection: ChangeSelection<'_>,
        limit: i64,
    ) -> Result<Self, QueryError> {
        let mut client = generation.client().await?;
        let transaction = lookup::begin_snapshot(&mut client).await?;
        let statement = transaction.prepare_cached(SINCE).await?;
        let none: Option<chrono::DateTime<chrono::Utc>> = None;
        let served = transaction.query_one(&statement, &[&none]).await?;
        if !served.try_get::<_, bool>("served")? {
            return Err(QueryError::NotServed(generation.id));
        }
        let version = lookup::read_version(generation, &transaction).await?;
        let securities = match selection.symbols {
            Some(list) => Some(ListedSecurities::find_in(&transaction, list).await?),
            None => None,
        };
        let symbols = securities.as_ref().map(ListedSecurities::all);
        let reader = KindReader {
            transaction: &transaction,
            after,
            symbols: symbols.as_deref(),
            notices: selection.notices,
            limit,
        };
        let (mut changes, mut horizon) = (Vec::new(), None);
        for kind in selection.kinds {
            let of_kind = reader.read(*kind).await?;
            // If `limit` changes of a kind were read, the journal may contain further changes of this kind. The page
            // must then end at the last change of this kind that was read, or earlier.
            let is_full = i64::try_from(of_kind.len()).is_ok_and(|count| count >= limit);
            if let Some(last) = of_kind.last().filter(|_| is_full).map(Change::group) {
                horizon = Some(horizon.map_or(last, |known: ChangeGroup| known.min(last)));
            }
            changes.extend(of_kind);
        }
        // The sort is stable, so changes with the same sort key stay in the order of the database: by symbol and id.
        changes.sort_by_key(Change::group);
        if let Some(horizon) = horizon {
            changes.truncate(changes.partition_point(|change| change.group() <= horizon));
        }
        mark_complete_commits(&mut changes, horizon.is_none());
        // A limit above `usize::MAX` has no effect.
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = horizon.is_some() || changes.len() > limit;
        changes.truncate(limit);
        let end = match changes.last() {
            Some(last) if has_more => last.place(),
            _ => JournalPlace::after_commit(version.position.max(after.position)),
        };
        if securities.is_none() {
            add_other_symbols(&transaction, &mut changes).await?;
        }
        Ok(Self { journal: served.try_get("journal")?, version, changes, securities, end, has_more })
    }
}

/// Sort key of the delivery order: position, live flag (`false` for a removed row), kind. Changes with the same key are
/// ordered by symbol and id.
type ChangeGroup = (JournalPosition, bool, ChangeKind);

impl Change {
    fn group(&self) -> ChangeGroup {
        (self.position, self.key.live, self.key.kind)
    }
}

/// Marks the last change of each commit. The last commit on the page is marked only if `is_complete` is true.
fn mark_complete_commits(changes: &mut [Change], is_complete: bool) {
    let mut next = None;
    for change in changes.iter_mut().rev() {
        change.completes_commit = next.map_or(is_complete, |next| next != change.position);
        next = Some(change.position);
    }
}

/// Adds to each change the former symbols and other spellings of the changed security. A stream for selected symbols
/// needs these spellings to find the changes that its client requested.
async fn add_other_symbols(transaction: &Transaction<'_>, changes: &mut [Change]) -> Result<(), QueryError> {
    let securities: BTreeSet<&str> = changes.iter().map(|change| change.key.symbol.as_str()).collect();
    let securities: Vec<&str> = securities.into_iter().collect();
    let statement = transaction.prepare_cached(OTHER_SYMBOLS).await?;
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for row in transaction.query(&statement, &[&securities]).await? {
        found.entry(row.try_get("canonical")?).or_default().push(row.try_get("symbol")?);
    }
    let found: HashMap<String, Arc<[String]>> =
        found.into_iter().map(|(security, symbols)| (security, symbols.into())).collect();
    for change in changes {
        if let Some(symbols) = found.get(&change.key.symbol) {
            change.other_symbols = Arc::clone(symbols);
        }
    }
    Ok(())
}

/// Reader of the changes of one kind.
struct KindReader<'a, 't> {
    transaction: &'a Transaction<'t>,
    after: &'a JournalPlace,
    symbols: Option<&'a [String]>,
    notices: Option<&'a NoticeSelection>,
    limit: i64,
}

impl KindReader<'_, '_> {
    async fn read(&self, kind: ChangeKind) -> Result<Vec<Change>, QueryError> {
        match kind {
            ChangeKind::Dividends => {
                self.rows::<DividendRow>(kind, |row| (row.ex_date, JsonForms::render(row))).await
            }
            ChangeKind::Splits => {
                self.rows::<SplitRow>(kind, |row| (row.ex_date, JsonForms::render(row))).await
            }
            ChangeKind::Events => self.values(kind, EVENTS, "symbol", |_, row| read_events(row)).await,
            ChangeKind::Factors => self.values(kind, FACTORS, "symbol", |_, row| read_factors(row)).await,
            ChangeKind::Statuses => self.values(kind, STATUSES, "symbol", read_status).await,
            ChangeKind::Lists => self.values(kind, LISTS, "change_symbol", read_lists).await,
            ChangeKind::Notices => self.notices().await,
        }
    }

    /// Exclusive lower bound of the page, for changes of this kind in the commit of `after`: live flag, symbol and id.
    /// Changes in later commits have no bound.
    fn bound(&self, kind: ChangeKind) -> (bool, &str, &str) {
        match &self.after.row {
            None => (true, GREATEST, GREATEST),
            Some(row) if row.kind == kind => (row.live, &row.symbol, &row.id),
            Some(row) if row.kind < kind => (row.live, "", ""),
            Some(row) => (row.live, GREATEST, GREATEST),
        }
    }

    async fn rows<T: TrackedRow>(
        &self,
        kind: ChangeKind,
        render: fn(&T) -> (NaiveDate, Result<JsonForms, serde_json::Error>),
    ) -> Result<Vec<Change>, QueryError> {
        let (live, symbol, id) = self.bound(kind);
        let position = self.after.position;
        let before = JournalPosition(position.0.saturating_sub(1));
        let parameters: [&(dyn ToSql + Sync); 8] =
            [&self.symbols, &FIRST_DAY, &before, &position, &live, &symbol, &id, &self.limit];
        let statement = self.transaction.prepare_cached(T::CHANGES).await?;
        let rows = self.transaction.query(&statement, &parameters).await?;
        let mut changes = Vec::new();
        for changed in ChangedRow::<T>::read_all(&rows)? {
            let id = changed.row.id().unwrap_or_default().to_owned();
            let (ex_date, json) = render(&changed.row);
            let content = ChangeContent::Row { ex_date, json: json? };
            let key = RowKey { live: changed.live, kind, symbol: changed.symbol, id };
            changes.push(new_change(changed.position, key, content));
        }
        Ok(changes)
    }

    async fn notices(&self) -> Result<Vec<Change>, QueryError> {
        let kind = ChangeKind::Notices;
        let (live, symbol, id) = self.bound(kind);
        let (events, causes) = (self.notices.map(|one| &one.events), self.notices.map(|one| &one.causes));
        let backfill = self.notices.is_none_or(|one| one.backfill);
        let position = self.after.position;
        let parameters: [&(dyn ToSql + Sync); 9] =
            [&self.symbols, &position, &live, &symbol, &id, &self.limit, &events, &causes, &backfill];
        let statement = self.transaction.prepare_cached(NOTICES).await?;
        let mut changes = Vec::new();
        for row in self.transaction.query(&statement, &parameters).await? {
            let notice = read_notice(&row)?;
            let json = JsonForms::render(&notice)?;
            let key = RowKey { live: true, kind, symbol: row.try_get("symbol")?, id: row.try_get("id")? };
            let content = ChangeContent::Notice { notice: Box::new(notice), json };
            changes.push(new_change(row.try_get("position")?, key, content));
        }
        Ok(changes)
    }

    async fn values(
        &self,
        kind: ChangeKind,
        statement: &str,
        symbol_column: &str,
        read: fn(&str, &Row) -> Result<ChangeContent, QueryError>,
    ) -> Result<Vec<Change>, QueryError> {
        let (live, symbol, _) = self.bound(kind);
        let parameters: [&(dyn ToSql + Sync); 5] =
            [&self.symbols, &self.after.position, &live, &symbol, &self.limit];
        let statement = self.transaction.prepare_cached(statement).await?;
        let mut changes = Vec::new();
        for row in self.transaction.query(&statement, &parameters).await? {
            let symbol: String = row.try_get(symbol_column)?;
            let content = read(&symbol, &row)?;
            // A removed dividend or split has the live flag `false`. The kinds read here, such as events and statuses,
            // have empty content after a removal instead.
            let key = RowKey { live: true, kind, symbol, id: String::new() };
            changes.push(new_change(row.try_get("position")?, key, content));
        }
        Ok(changes)
    }
}

fn new_change(position: JournalPosition, key: RowKey, content: ChangeContent) -> Change {
    Change { position, key, completes_commit: false, other_symbols: Arc::default(), content }
}

fn read_events(row: &Row) -> Result<ChangeContent, QueryError> {
    let identity: Option<JsonColumn<Identity>> = row.try_get("identity")?;
    let as_of: Option<NaiveDate> = row.try_get("as_of")?;
    let security = identity.and_then(|identity| identity.0.security).zip(as_of);
    let mut events =
        security.map(|(security, as_of)| ticker_events(&security.record, as_of)).unwrap_or_default();
    events.sort_by_key(|event| event.date);
    Ok(ChangeContent::Events(events))
}

fn read_factors(row: &Row) -> Result<ChangeContent, QueryError> {
    let factors: Option<JsonColumn<Vec<AdjustmentFactor>>> = row.try_get("factors")?;
    let factors = factors.map(|factors| factors.0).unwrap_or_default();
    let mut factors: Vec<Factor> = factors.iter().map(Factor::from).collect();
    factors.sort_by_key(|factor| factor.ex_date);
    Ok(ChangeContent::Factors(factors))
}

fn read_status(symbol: &str, row: &Row) -> Result<ChangeContent, QueryError> {
    let status: Option<DividendState> = row.try_get("dividend_status")?;
    let row = status.map(|dividend_status| StatusRow { symbol: symbol.to_owned(), dividend_status });
    let json = row.map(|row| JsonForms::render(&row));
    Ok(ChangeContent::Value(json.transpose()?))
}

fn read_lists(symbol: &str, row: &Row) -> Result<ChangeContent, QueryError> {
    if row.try_get::<_, Option<&str>>("symbol")?.is_none() {
        return Ok(ChangeContent::Value(None));
    }
    let (stock, figures) = (StockRow::from_row(row)?, StockFigures::from_row(row)?);
    let lists = lists_of(&stock, &figures).collect::<Vec<_>>();
    if lists.is_empty() {
        return Ok(ChangeContent::Value(None));
    }
    let json = JsonForms::render(&SecurityLists { symbol, lists })?;
    Ok(ChangeContent::Value(Some(json)))
}

const SECURITIES: &str = include_str!("../../../queries/changes/securities.sql");

/// Current and former securities of a list of symbols.
#[derive(Debug)]
pub(crate) struct ListedSecurities {
    /// Canonical symbols of the securities that now have a requested symbol. Also the requested symbols themselves,
    /// because an unused symbol may get a security later.
    pub(crate) named: BTreeSet<String>,
    /// Canonical symbols of the former securities. A former security had one of the listed symbols earlier, but has
    /// none of them now. Symbol changes that the journal no longer contains are not considered.
    pub(crate) former: BTreeSet<String>,
}

impl ListedSecurities {
    /// Finds the securities of the symbols in `list`, in the tables of `generation`.
    pub(crate) async fn find(generation: &ServedGeneration, list: &SymbolList) -> Result<Self, QueryError> {
        Self::find_in(&generation.client().await?, list).await
    }

    /// Finds the securities of the symbols in `list`, in the tables or the snapshot that `client` reads.
    async fn find_in(client: &impl GenericClient, list: &SymbolList) -> Result<Self, QueryError> {
        let (places, spellings) = list.to_columns();
        let statement = client.prepare_cached(SECURITIES).await?;
        let rows = client.query(&statement, &[&places, &spellings]).await?;
        let written = list.0.iter().filter_map(|symbol| symbol.candidates.first().cloned());
        let (mut named, mut former): (BTreeSet<String>, BTreeSet<String>) =
            (written.collect(), BTreeSet::new());
        for row in &rows {
            let securities = if row.try_get("is_named")? { &mut named } else { &mut former };
            securities.insert(row.try_get("symbol")?);
        }
        former.retain(|security| !named.contains(security));
        Ok(Self { named, former })
    }

    /// Returns one list with all symbols in `named`, followed by all symbols in `former`.
    pub(crate) fn all(&self) -> Vec<String> {
        self.named.iter().chain(&self.former).cloned().collect()
    }
}
