//! Rows of the fact tables that contain rows of some record batches. The batches are read again from the log.
//!
//! Reader of log messages by their sequences.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::stream::Stream;
use event_log::record_batch::{BatchId, Body, RecordBatch};
use futures::{StreamExt, TryStreamExt, stream};
use market::event::Kind;
use store::past_facts::{BarsKey, RecordsKey};
use store::rows::id_digest;
use store::view::{self, BatchOwners};
use tokio_postgres::Transaction;

use crate::error::{ApplyError, ConsumeError};
use crate::facts::dividend_feeds::{FeedYear, feed_years};
use crate::facts::records::rows_of_ids;

/// Keys of the rows that contain rows of some record batches.
#[derive(Debug, Default)]
pub(crate) struct TouchedRows {
    /// Rows of table `records`.
    pub(crate) records: BTreeSet<RecordsKey>,
    /// Rows of table `bars`.
    pub(crate) years: BTreeSet<BarsKey>,
    /// Sources and years of the dividends.
    pub(crate) feed_years: BTreeSet<FeedYear>,
}

impl TouchedRows {
    /// Finds the rows of `batches`, which are in the log messages `sequences`.
    pub(crate) async fn read(
        transaction: &Transaction<'_>,
        log: &Stream,
        batches: &BTreeSet<BatchId>,
        sequences: BTreeSet<i64>,
    ) -> Result<Self, ApplyError> {
        let (mut touched, mut ids) = (Self::default(), BTreeMap::new());
        read_messages(log, sequences, |batch| match batches.contains(&batch.id) {
            true => touched.add(&batch, &mut ids),
            false => Ok::<(), ApplyError>(()),
        })
        .await?;
        touched.with_moved_records(transaction, &ids).await
    }

    /// Finds the rows of `batches`, which the log does not contain.
    pub(crate) async fn of_batches(
        transaction: &Transaction<'_>,
        batches: &[RecordBatch],
    ) -> Result<Self, ApplyError> {
        let (mut touched, mut ids) = (Self::default(), BTreeMap::new());
        batches.iter().try_for_each(|batch| touched.add(batch, &mut ids))?;
        touched.with_moved_records(transaction, &ids).await
    }

    async fn with_moved_records(
        mut self,
        transaction: &Transaction<'_>,
        ids: &BTreeMap<i64, RecordsKey>,
    ) -> Result<Self, ApplyError> {
        // If a vendor corrected the symbol of a record, the record is stored under each of its symbols.
        self.records.extend(rows_of_ids(transaction, ids).await?);
        Ok(self)
    }

    /// Adds the rows of a batch. `ids` gets the digests of the vendors' record ids.
    fn add(&mut self, batch: &RecordBatch, ids: &mut BTreeMap<i64, RecordsKey>) -> Result<(), ApplyError> {
        if let Body::Prices(series) = &batch.body {
            for series in series {
                let key = |(year, _)| (series.symbol.to_string(), batch.source.clone(), year);
                self.years.extend(series.bars.years().into_iter().map(key));
            }
        }
        let (kind, source) = (batch.body.kind(), &batch.source);
        for (symbol, raw) in batch.body.observations(batch.id)? {
            let key = RecordsKey { symbol, kind, source: source.clone() };
            if let Some(id) = &raw.id {
                ids.insert(id_digest(kind, source, id), key.clone());
            }
            self.records.insert(key);
        }
        self.feed_years.extend(feed_years(batch));
        Ok(())
    }

    /// Rows of table `records` of a symbol.
    pub(crate) fn records_of(&self, symbol: &str) -> impl Iterator<Item = &RecordsKey> {
        let first = RecordsKey { symbol: symbol.to_owned(), kind: Kind::Security, source: String::new() };
        self.records.range(first..).take_while(move |key| key.symbol == symbol)
    }

    /// Rows of table `bars` of a symbol.
    pub(crate) fn years_of(&self, symbol: &str) -> impl Iterator<Item = &BarsKey> {
        let first = (symbol.to_owned(), String::new(), i32::MIN);
        self.years.range(first..).take_while(move |(of, ..)| of == symbol)
    }

    /// Symbols of the rows. Records without a symbol (for example trading sessions) are left out.
    pub(crate) fn symbols(&self) -> BTreeSet<&str> {
        let records = self.records.iter().map(|key| key.symbol.as_str());
        let all = records.chain(self.years.iter().map(|(symbol, ..)| symbol.as_str()));
        all.filter(|symbol| !symbol.is_empty()).collect()
    }
}

/// Batches whose visibility changes, and the sequences of their messages. `counts` returns if a batch counts before and
/// after the change.
pub(crate) fn changed_batches(
    owners: &BatchOwners,
    counts: impl Fn(&view::BatchId) -> [bool; 2],
) -> (BTreeSet<BatchId>, BTreeSet<i64>) {
    let changed = owners.places().filter(|(id, _)| {
        let [before, after] = counts(id);
        before != after
    });
    changed.map(|(id, place)| (BatchId(*id), place.sequence)).unzip()
}

/// Maximum number of messages that are requested at the same time.
const CONCURRENT_READS: usize = 16;

/// Reads the messages with these sequences, in this order. Calls `each` for every record batch in them.
pub(crate) async fn read_messages<E: From<ConsumeError>>(
    log: &Stream,
    sequences: impl IntoIterator<Item = i64>,
    mut each: impl FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let reads = stream::iter(sequences).map(async |sequence| {
        let sequence = sequence.unsigned_abs();
        let read = log.get_raw_message(sequence).await;
        let message = read.map_err(|source| ConsumeError::Message { sequence, source: Box::new(source) })?;
        let batches = RecordBatch::decode(Some(&message.headers), &message.payload);
        batches.map_err(|source| ConsumeError::Message { sequence, source: Box::new(source) })
    });
    let mut messages = std::pin::pin!(reads.buffered(CONCURRENT_READS));
    while let Some(batches) = messages.try_next().await? {
        batches.into_iter().try_for_each(&mut each)?;
    }
    Ok(())
}
