//! Notices of a transaction: what happened to securities, for feeds and for the change stream.
//!
//! Invariant: a notice is written in the transaction that publishes the change, with the position of its changes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Months, NaiveDate, Utc};
use market::decimal::with_decimals_as_text;
use market::identity::Identity;
use market::metrics::Rules;
use market::metrics::calendar::next_session;
use market::metrics::revisions::ticker_events;
use market::notices::{NoticeContext, first_notice_date};
use market::row::{
    DividendRow, DividendState, JsonColumn, Notice, NoticeCause, NoticeEvent, NoticeKind, NoticeRow, SplitRow,
};
use serde_json::value::RawValue;
use store::copy::copy_into;
use store::{FromRow, find_rows};
use tokio_postgres::Transaction;

use crate::error::DeriveError;
use crate::write::changed_records::ChangedRecords;
use crate::write::journal::Journal;

const DIVIDENDS: &str = include_str!("../../queries/notices_dividends.sql");
const SPLITS: &str = include_str!("../../queries/notices_splits.sql");
const STATUSES: &str = include_str!("../../queries/notices_statuses.sql");
const NEXT_SESSION: &str = include_str!("../../queries/notices_next_session.sql");
const LISTED: &str = include_str!("../../queries/notices_listed.sql");
const IDENTITIES: &str = "select identity from identities where symbol = any ($1)";
/// Securities whose dividends are loaded at once.
const CHUNK: usize = 500;
/// History with which a declared dividend is compared.
const COMPARED: Months = Months::new(36);

store::copy_row! {
    /// Row of table `notices`.
    struct NoticeEntry in "notices" {
        position: i64,
        symbol: String,
        id: String,
        event: NoticeEvent,
        kind: NoticeKind,
        record: Option<String>,
        date: NaiveDate,
        cause: NoticeCause,
        at: DateTime<Utc>,
        is_backfill: bool,
        before: Option<JsonColumn<Box<RawValue>>>,
        after: Option<JsonColumn<Box<RawValue>>>,
    }
}

impl NoticeEntry {
    fn new(position: i64, notice: Notice) -> Result<Self, serde_json::Error> {
        let Notice { event, symbol, kind, id: record, date, cause, known_at: at, is_backfill, before, after } =
            notice;
        let id = match &record {
            Some(record) => format!("{event}/{record}"),
            None => format!("{event}/{date}"),
        };
        let json = |row: Option<NoticeRow>| {
            let row = row.map(|row| with_decimals_as_text(|| serde_json::value::to_raw_value(&row)));
            Ok::<_, serde_json::Error>(row.transpose()?.map(JsonColumn))
        };
        let (before, after) = (json(before)?, json(after)?);
        Ok(Self { position, symbol, id, event, kind, record, date, cause, at, is_backfill, before, after })
    }
}

/// Writes the notices of a transaction that is about to publish its changes. `before` is the market date before them. For
/// `data_since`, see [`NoticeContext`].
pub(crate) async fn write_notices(
    transaction: &Transaction<'_>,
    journal: &Journal,
    [before, as_of]: [Option<NaiveDate>; 2],
    rules: &Rules,
    (cause, data_since): (NoticeCause, Option<DateTime<Utc>>),
) -> Result<(), DeriveError> {
    let (Some(changed), Some(as_of)) = (journal.take_changed(), as_of) else { return Ok(()) };
    let context =
        NoticeContext { as_of, cause, data_since, known_at: journal.opened_at, rules: &rules.streak };
    let mut notices = Vec::new();
    if before != Some(as_of) || !changed.dividends.symbols().is_empty() {
        let rows = transaction.query(NEXT_SESSION, &[&as_of, &next_session(as_of)]).await?;
        for row in &rows {
            let context = NoticeContext { cause: NoticeCause::Data, ..context };
            notices.push(context.of_next_session(DividendRow::from_row(row)?));
        }
    }
    let ChangedRecords { dividends, splits, statuses, events } = changed;
    let first = first_notice_date(as_of);
    let served = load(transaction, DIVIDENDS, &dividends.symbols(), first).await?;
    let (of_dividends, declared) = context.of_dividends(dividends.into_changes(served, dividend_key));
    notices.extend(of_dividends);
    notices.extend(compare_rates(transaction, &context, &declared).await?);
    let served = load(transaction, SPLITS, &splits.symbols(), first).await?;
    notices.extend(context.of_splits(splits.into_changes(served, split_key)));
    notices.extend(compare_statuses(transaction, &context, &statuses).await?);
    notices.extend(find_ticker_events(transaction, &context, &events).await?);
    let position = journal.position.0;
    let entries = notices.into_iter().map(|notice| NoticeEntry::new(position, notice));
    let entries: BTreeMap<(String, String), NoticeEntry> = entries
        .map(|entry| entry.map(|entry| ((entry.symbol.clone(), entry.id.clone()), entry)))
        .collect::<Result<_, _>>()?;
    copy_into(transaction, entries.values()).await?;
    Ok(())
}

fn dividend_key(row: &DividendRow) -> (&str, &str) {
    (&row.symbol, row.id.as_deref().unwrap_or_default())
}

fn split_key(row: &SplitRow) -> (&str, &str) {
    (&row.symbol, &row.id)
}

/// Loads the rows of some securities from an ex-date on.
async fn load<T: FromRow>(
    transaction: &Transaction<'_>,
    statement: &str,
    symbols: &[&str],
    first: NaiveDate,
) -> Result<Vec<T>, DeriveError> {
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    Ok(find_rows(transaction, statement, &[&symbols, &first]).await?)
}

/// Notices of the declared dividends that are higher or lower than the rate before.
async fn compare_rates(
    transaction: &Transaction<'_>,
    context: &NoticeContext<'_>,
    declared: &[DividendRow],
) -> Result<Vec<Notice>, DeriveError> {
    let mut by_symbol: BTreeMap<&str, Vec<&DividendRow>> = BTreeMap::new();
    for row in declared {
        by_symbol.entry(&row.symbol).or_default().push(row);
    }
    let symbols: Vec<&str> = by_symbol.keys().copied().collect();
    let first = first_notice_date(context.as_of).checked_sub_months(COMPARED).unwrap_or(NaiveDate::MIN);
    let mut notices = Vec::new();
    for symbols in symbols.chunks(CHUNK) {
        let rows: Vec<DividendRow> = load(transaction, DIVIDENDS, symbols, first).await?;
        for of_security in rows.chunk_by(|row, next| row.symbol == next.symbol) {
            let declared = by_symbol.get(of_security[0].symbol.as_str()).into_iter().flatten();
            let of_security: Vec<&DividendRow> = of_security.iter().collect();
            notices.extend(declared.filter_map(|row| context.of_rate(row, &of_security)));
        }
    }
    Ok(notices)
}

async fn compare_statuses(
    transaction: &Transaction<'_>,
    context: &NoticeContext<'_>,
    before: &BTreeMap<String, DividendState>,
) -> Result<Vec<Notice>, DeriveError> {
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let symbols: Vec<&str> = before.keys().map(String::as_str).collect();
    let mut notices = Vec::new();
    for row in transaction.query(STATUSES, &[&symbols]).await? {
        let symbol: &str = row.try_get("symbol")?;
        if let Some(before) = before.get(symbol) {
            let statuses = [*before, row.try_get("dividend_status")?];
            notices.extend(context.of_status(symbol, statuses, row.try_get("newest")?));
        }
    }
    Ok(notices)
}

async fn find_ticker_events(
    transaction: &Transaction<'_>,
    context: &NoticeContext<'_>,
    symbols: &BTreeSet<String>,
) -> Result<Vec<Notice>, DeriveError> {
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
    let mut notices = Vec::new();
    for row in transaction.query(IDENTITIES, &[&symbols]).await? {
        let JsonColumn(identity): JsonColumn<Identity> = row.try_get("identity")?;
        if let Some(security) = identity.security {
            notices.extend(context.of_ticker_events(ticker_events(&security.record, context.as_of)));
        }
    }
    let listed = transaction.query(LISTED, &[&symbols]).await?;
    let listed =
        listed.iter().map(|row| Ok((row.try_get("symbol")?, row.try_get("event")?, row.try_get("date")?)));
    let listed: BTreeSet<(String, NoticeEvent, NaiveDate)> =
        listed.collect::<Result<_, tokio_postgres::Error>>()?;
    notices.retain(|notice| !listed.contains(&(notice.symbol.clone(), notice.event, notice.date)));
    Ok(notices)
}
