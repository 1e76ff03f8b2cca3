//! Dividend years: calendar years in which a source has a dividend of any security.
//!
//! They show that the source carries dividends. A covered security without dividends then pays none (R38). A new year
//! can change the status of every security that the source covers.

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
const STORED_DIVIDENDS: &str = "select symbol, source, packed from records
    where kind = 'dividend' and not exists (select from dividend_feeds)";

/// Sequence of the first log message with a dividend, by source and calendar year; 0 if unknown.
type FeedYears = BTreeMap<(String, i32), i64>;

/// Stores the source and year of each dividend. A new year marks all symbols of the source dirty.
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

/// Fills table `dividend_feeds` from the stored dividends if an older program version left it empty.
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

/// Source and year of a dividend; `None` without a date, or for `manual`, which is not a feed.
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
