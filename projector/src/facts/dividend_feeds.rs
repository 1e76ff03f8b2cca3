//! Calendar years in which a source has at least one dividend. The dividend may be of any security.
//!
//! These years show that the source carries dividends at all. If such a source covers a security but has no dividend
//! for it, the security pays none. If no such source covers the security, its dividends are unknown (R38).
//!
//! Years are added only by dividend rows in the log, and are never removed. A new year of a source can change the
//! dividend status of every security that the source covers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use chrono::Datelike;
use codec::records;
use event_log::record_batch::{Body, RecordBatch};
use event_log::sequence::Sequence;
use futures::TryStreamExt;
use market::event::{Action, Dividend, EventRecord};
use market::metrics::source_preference::MANUAL;
use tokio_postgres::Transaction;

use crate::error::ApplyError;

const INSERT: &str = include_str!("../../queries/dividend_feeds_insert.sql");
const MARK_DIRTY: &str = include_str!("../../queries/dividend_feeds_mark_dirty.sql");
/// Selects all stored dividends if the fact set has no dividend years. The years are missing if an older program
/// version wrote the fact set.
const STORED_DIVIDENDS: &str = "select symbol, source, packed from records
    where kind = 'dividend' and not exists (select from dividend_feeds)";

/// Maps (source, year) to the sequence of the first log message with a dividend of this source in this year; 0 if
/// unknown.
type FeedYears = BTreeMap<(String, i32), i64>;

/// Stores the source and the year of each dividend in `batches`. If a year is new for a source, marks all symbols of
/// the source dirty, so that their securities are derived again.
pub(crate) async fn apply_dividend_feeds(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[(Sequence, &RecordBatch)],
) -> Result<(), ApplyError> {
    let mut years = FeedYears::new();
    for (sequence, batch) in batches {
        let Body::Dividends(rows) = &batch.body else { continue };
        let put = rows.iter().filter(|row| row.action == Action::Put).map(|row| &row.record);
        for key in put.filter_map(|dividend| feed_year(&batch.source, dividend)) {
            let first = years.entry(key).or_insert(sequence.to_i64());
            *first = sequence.to_i64().min(*first);
        }
    }
    insert_years(transaction, fact_set, &years).await
}

/// Adds the dividend years to a fact set that an older program version wrote without them.
pub(crate) async fn fill_dividend_feeds(
    transaction: &Transaction<'_>,
    fact_set: &str,
) -> Result<(), ApplyError> {
    let mut years = FeedYears::new();
    let none: [&str; 0] = [];
    let mut rows = pin!(transaction.query_raw(STORED_DIVIDENDS, none).await?);
    while let Some(row) = rows.try_next().await? {
        let (symbol, source): (&str, &str) = (row.try_get("symbol")?, row.try_get("source")?);
        let said = records::read::<Dividend>(source, row.try_get("packed")?);
        let said = said.map_err(|source| ApplyError::Packed { symbol: symbol.to_owned(), source })?;
        let put = said.iter().filter(|seen| seen.action == Action::Put);
        years.extend(put.filter_map(|seen| feed_year(source, &seen.record)).map(|key| (key, 0)));
    }
    insert_years(transaction, fact_set, &years).await
}

/// Source and year of a dividend; `None` if the dividend has no date, or if the source is `manual`, which is not a
/// feed.
fn feed_year(source: &str, dividend: &Dividend) -> Option<(String, i32)> {
    let date = dividend.date().filter(|_| source != MANUAL)?;
    Some((source.to_owned(), date.year()))
}

async fn insert_years(
    transaction: &Transaction<'_>,
    fact_set: &str,
    years: &FeedYears,
) -> Result<(), ApplyError> {
    if years.is_empty() {
        return Ok(());
    }
    let (sources, years, sequences): (Vec<&str>, Vec<i32>, Vec<i64>) =
        years.iter().map(|((source, year), first)| (source.as_str(), *year, *first)).collect();
    let rows = transaction.query(INSERT, &[&sources, &years, &sequences]).await?;
    let grown: BTreeSet<&str> = rows.iter().map(|row| row.try_get("source")).collect::<Result<_, _>>()?;
    let grown: Vec<&str> = grown.into_iter().collect();
    if !grown.is_empty() {
        transaction.execute(MARK_DIRTY, &[&fact_set, &grown]).await?;
    }
    Ok(())
}
