//! Dividend years: calendar years in which a source has a dividend of any security.
//!
//! They show that the source carries dividends. A covered security without dividends then pays none (R38). A year that
//! begins or ends can change the status of every security that the source covers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::pin::pin;

use chrono::Datelike;
use codec::records;
use event_log::record_batch::{Body, RecordBatch};
use event_log::sequence::Sequence;
use futures::TryStreamExt;
use market::event::{Action, Dividend, EventRecord};
use market::metrics::source_preference::MANUAL;
use tokio_postgres::{Row, Transaction};

use crate::error::ApplyError;

const INSERT: &str = include_str!("../../queries/dividend_feeds_insert.sql");
const MARK_DIRTY: &str = include_str!("../../queries/dividend_feeds_mark_dirty.sql");
const END: &str = include_str!("../../queries/dividend_feeds_end.sql");
const IS_FILLED: &str = "select exists (select from dividend_feeds)";
const STORED_DIVIDENDS: &str = "select symbol, source, packed from records
    where kind = 'dividend' and ($1::text is null or source = $1)";

/// Source and calendar year.
pub(crate) type FeedYear = (String, i32);

/// Stores the source and year of each dividend. A new year marks all symbols of the source dirty.
pub(crate) async fn apply_dividend_feeds(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[(Sequence, &RecordBatch)],
) -> Result<(), ApplyError> {
    let mut years: BTreeMap<FeedYear, i64> = BTreeMap::new();
    for (sequence, batch) in batches {
        for key in feed_years(batch) {
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
    if transaction.query_one(IS_FILLED, &[]).await?.try_get(0)? {
        return Ok(());
    }
    let mut years = BTreeMap::new();
    each_stored_year(transaction, None, |year| {
        years.insert(year, 0);
        ControlFlow::Continue(())
    })
    .await?;
    insert_years(transaction, fact_set, &years).await
}

/// Updates the given years after the visibility of dividends changed at `sequence`. A year that begins or ends marks
/// all symbols of the source dirty.
pub(crate) async fn update_feed_years(
    transaction: &Transaction<'_>,
    fact_set: &str,
    years: &BTreeSet<FeedYear>,
    sequence: Sequence,
) -> Result<(), ApplyError> {
    let mut missing = years.clone();
    for source in years.iter().map(|(source, _)| source).collect::<BTreeSet<_>>() {
        each_stored_year(transaction, Some(source), |year| {
            missing.remove(&year);
            if missing.iter().any(|(of, _)| of == source) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .await?;
    }
    let (sources, ended): (Vec<&str>, Vec<i32>) =
        missing.iter().map(|(source, year)| (source.as_str(), *year)).unzip();
    let rows = transaction.query(END, &[&sources, &ended, &sequence.to_i64()]).await?;
    mark_dirty(transaction, fact_set, &rows).await?;
    let visible = years.difference(&missing).map(|year| (year.clone(), sequence.to_i64())).collect();
    insert_years(transaction, fact_set, &visible).await
}

/// Sources and years of the dividends in a batch. `manual` is not a feed and has none.
pub(crate) fn feed_years(batch: &RecordBatch) -> BTreeSet<FeedYear> {
    let Body::Dividends(rows) = &batch.body else { return BTreeSet::new() };
    let put = rows.iter().filter(|row| row.action == Action::Put);
    put.filter_map(|row| feed_year(&batch.source, &row.record)).collect()
}

fn feed_year(source: &str, dividend: &Dividend) -> Option<FeedYear> {
    let date = dividend.date().filter(|_| source != MANUAL)?;
    Some((source.to_owned(), date.year()))
}

/// Calls `each` for the year of every stored dividend that counts, of one source or of all, until it breaks.
async fn each_stored_year(
    transaction: &Transaction<'_>,
    source: Option<&str>,
    mut each: impl FnMut(FeedYear) -> ControlFlow<()>,
) -> Result<(), ApplyError> {
    let mut rows = pin!(transaction.query_raw(STORED_DIVIDENDS, [source]).await?);
    while let Some(row) = rows.try_next().await? {
        let (symbol, source): (&str, &str) = (row.try_get("symbol")?, row.try_get("source")?);
        let said = records::read::<Dividend>(source, row.try_get("packed")?);
        let said = said.map_err(|source| ApplyError::Packed { symbol: symbol.to_owned(), source })?;
        for seen in said.iter().filter(|seen| seen.action == Action::Put) {
            if feed_year(source, &seen.record).is_some_and(|year| each(year).is_break()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn insert_years(
    transaction: &Transaction<'_>,
    fact_set: &str,
    years: &BTreeMap<FeedYear, i64>,
) -> Result<(), ApplyError> {
    if years.is_empty() {
        return Ok(());
    }
    let (sources, years, sequences): (Vec<&str>, Vec<i32>, Vec<i64>) =
        years.iter().map(|((source, year), first)| (source.as_str(), *year, *first)).collect();
    let rows = transaction.query(INSERT, &[&sources, &years, &sequences]).await?;
    mark_dirty(transaction, fact_set, &rows).await
}

/// Marks all symbols of the sources in `rows` dirty.
async fn mark_dirty(transaction: &Transaction<'_>, fact_set: &str, rows: &[Row]) -> Result<(), ApplyError> {
    let sources: BTreeSet<&str> = rows.iter().map(|row| row.try_get("source")).collect::<Result<_, _>>()?;
    let sources: Vec<&str> = sources.into_iter().collect();
    if !sources.is_empty() {
        transaction.execute(MARK_DIRTY, &[&fact_set, &sources]).await?;
    }
    Ok(())
}
