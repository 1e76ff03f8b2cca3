//! Applies log messages to the facts (the tables with the loaded rows). Facts, dead letters and checkpoint commit in
//! one transaction.
//!
//! A refused group of record batches is split in halves, down to the refused row. This row becomes a dead letter; all
//! other rows are applied.

use std::collections::HashSet;

use async_nats::jetstream::stream::Stream;
use event_log::message::LogMessage;
use event_log::record_batch::{BatchError, Body, RecordBatch};
use event_log::sequence::Sequence;
use market::event::RunEvent;
use store::db::error_chain;
use store::view::RunStates;
use telemetry::failpoint;
use tokio_postgres::Transaction;

use crate::apply::run_records::{
    apply_run_events, find_hidden, insert_batches, insert_run_records, load_applied_batches, row_number,
};
use crate::apply::{DeadLetter, insert_dead_letters, to_printable};
use crate::error::ApplyError;
use crate::facts::dividend_feeds::apply_dividend_feeds;
use crate::facts::prices::apply_prices;
use crate::facts::records::apply_records;
use crate::facts::{AppliedRecords, ChangedFacts, FactCache};

#[derive(Debug, Clone)]
struct SequencedBatch {
    sequence: Sequence,
    subject: String,
    /// Position of the batch's first item within the message, counted from 1. An item is one row, or all bars of one
    /// symbol. If a record batch is split, its items keep their positions.
    first_item: usize,
    batch: RecordBatch,
}

/// Applies messages to the facts in Postgres. Refused rows become dead letters. If the transaction rolls back, discard
/// `cache`.
///
/// `repeated` means that the messages have failed several times. Rows with an [`ApplyError::repeated_code`] are then
/// refused too.
pub async fn apply_messages(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    messages: &[LogMessage],
    log: &Stream,
    cache: &mut FactCache,
    repeated: bool,
) -> Result<(), ApplyError> {
    let (batches, mut letters) = decode_messages(fact_set, messages)?;
    let mut rest = drop_applied(transaction, batches).await?;
    insert_batches(transaction, &sequenced(&rest)).await?;
    while !rest.is_empty() {
        // A change of a run's state is applied alone, after all rows before it.
        let is_change = |placed: &SequencedBatch| matches!(placed.batch.body, Body::Run(RunEvent::Change(_)));
        let end = rest.iter().position(is_change).map_or(rest.len(), |position| position.max(1));
        let next = rest.split_off(end);
        letters.extend(apply_batches(transaction, fact_set, rest, log, cache, repeated).await?);
        rest = next;
    }
    Ok(insert_dead_letters(transaction, &letters).await?)
}

/// Retries a message that has dead letters: applies the message to the facts again. Returns the dead letters of the
/// rows that still cannot be applied. Rows that are already stored as facts are not stored twice.
pub async fn reapply_message(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    message: &LogMessage,
    log: &Stream,
) -> Result<Vec<DeadLetter>, ApplyError> {
    let (batches, mut letters) = decode_messages(fact_set, std::slice::from_ref(message))?;
    let missing = drop_applied(transaction, batches.clone()).await?;
    insert_batches(transaction, &sequenced(&missing)).await?;
    let mut none = FactCache::disabled();
    letters.extend(apply_batches(transaction, fact_set, batches, log, &mut none, true).await?);
    Ok(letters)
}

fn sequenced(batches: &[SequencedBatch]) -> Vec<(Sequence, &RecordBatch)> {
    batches.iter().map(|placed| (placed.sequence, &placed.batch)).collect()
}

/// Applies record batches. Returns one dead letter for each row that cannot be applied. A refused record batch is split
/// in halves until the refused row is found.
async fn apply_batches(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    batches: Vec<SequencedBatch>,
    log: &Stream,
    cache: &mut FactCache,
    repeated: bool,
) -> Result<Vec<DeadLetter>, ApplyError> {
    let (mut open, mut letters) = (vec![batches], Vec::new());
    while let Some(group) = open.pop().filter(|group| !group.is_empty()) {
        let Some((error, code)) = apply_or_undo(transaction, fact_set, &group, log, cache, repeated).await?
        else {
            continue;
        };
        match bisect(group) {
            BisectStep::Halves(left, right) => open.extend([right, left]),
            BisectStep::Single(placed) => {
                letters.push(to_dead_letter(fact_set, &placed, code, error_chain(&error))?);
            }
        }
    }
    Ok(letters)
}

/// Applies a group under a savepoint. If refused, rolls back and returns the error with its dead-letter code.
async fn apply_or_undo(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    group: &[SequencedBatch],
    log: &Stream,
    cache: &mut FactCache,
    repeated: bool,
) -> Result<Option<(ApplyError, String)>, ApplyError> {
    let savepoint = transaction.transaction().await?;
    let error = match apply_group(&savepoint, fact_set, group, log, cache).await {
        Ok(AppliedGroup { records, changed }) => {
            savepoint.commit().await?;
            cache.update_records(&records);
            cache.update_years(changed.years);
            cache.remove_symbols(&changed.symbols);
            return Ok(None);
        }
        Err(error) => error,
    };
    let code = error.dead_letter_code().or_else(|| error.repeated_code().filter(|_| repeated));
    let Some(code) = code else { return Err(error) };
    savepoint.rollback().await?;
    failpoint!("projector.bisecting");
    Ok(Some((error, code)))
}

/// Rows of the fact tables that a group changed.
struct AppliedGroup {
    records: Vec<AppliedRecords>,
    changed: ChangedFacts,
}

async fn apply_group(
    savepoint: &Transaction<'_>,
    fact_set: &str,
    group: &[SequencedBatch],
    log: &Stream,
    cache: &FactCache,
) -> Result<AppliedGroup, ApplyError> {
    let batches: Vec<&RecordBatch> = group.iter().map(|placed| &placed.batch).collect();
    let pairs = sequenced(group);
    let states = RunStates::load(savepoint).await?;
    let hidden = find_hidden(savepoint, &batches, &states).await?;
    let (records, divided) = apply_records(savepoint, fact_set, &batches, &hidden, &states).await?;
    let mut changed = apply_prices(savepoint, fact_set, &batches, &hidden, &states, cache).await?;
    changed.symbols.extend(divided);
    let visible: Vec<_> = pairs.iter().filter(|(_, batch)| !hidden.contains(&batch.id)).copied().collect();
    apply_dividend_feeds(savepoint, fact_set, &visible).await?;
    insert_run_records(savepoint, &pairs).await?;
    changed.extend(apply_run_events(savepoint, fact_set, &pairs, &states, log).await?);
    // Empty the staging table for the next group of this transaction.
    savepoint.batch_execute("truncate staged_rejects").await?;
    Ok(AppliedGroup { records, changed })
}

/// Decodes messages in parallel. A damaged message becomes a dead letter. Fails if a message has a newer format that
/// this program version cannot read.
fn decode_messages(
    fact_set: &str,
    messages: &[LogMessage],
) -> Result<(Vec<SequencedBatch>, Vec<DeadLetter>), ApplyError> {
    use rayon::prelude::*;
    let decoded: Vec<(&LogMessage, Result<Vec<RecordBatch>, BatchError>)> =
        tokio::task::block_in_place(|| {
            messages.par_iter().map(|message| (message, message.decode_batches())).collect()
        });
    let (mut batches, mut letters) = (Vec::new(), Vec::new());
    for (message, outcome) in decoded {
        match outcome {
            Ok(decoded) => {
                let mut first_item = 1;
                for batch in decoded {
                    let items = batch.body.item_count();
                    let (sequence, subject) = (message.sequence, message.subject.clone());
                    batches.push(SequencedBatch { sequence, subject, first_item, batch });
                    first_item += items;
                }
            }
            Err(source) if source.stops_reader() => {
                return Err(ApplyError::NewerVersion { sequence: message.sequence, source });
            }
            Err(error) => letters.push(undecodable_letter(fact_set, message, &error)),
        }
    }
    Ok((batches, letters))
}

fn undecodable_letter(fact_set: &str, message: &LogMessage, error: &BatchError) -> DeadLetter {
    let code = match error {
        BatchError::Header(_) | BatchError::HeaderBlock(_) => "bad_headers",
        BatchError::Json(_) => "bad_json",
        BatchError::Columns(_) | BatchError::Postcard(_) => "bad_columns",
        BatchError::Compression(_) => "bad_compression",
        BatchError::NewerVersion { .. } | BatchError::UnknownCodec(_) => "newer_version",
    };
    let header = |name: &str| {
        message.headers.as_ref().and_then(|h| h.get(name)).map(|v| to_printable(v.as_str().as_bytes()))
    };
    DeadLetter {
        fact_set: fact_set.to_owned(),
        sequence: message.sequence.to_i64(),
        item: 0,
        code: code.to_owned(),
        reason: to_printable(error_chain(error).as_bytes()),
        subject: message.subject.clone(),
        frame: header("Nats-Msg-Id"),
        source: header("Dds-Source"),
        file: header("Dds-File"),
        line: None,
        payload: to_printable(&message.payload),
    }
}

/// Drops record batches that were already applied in an earlier transaction. If several record batches have the same
/// id, drops all but the first.
async fn drop_applied(
    transaction: &Transaction<'_>,
    batches: Vec<SequencedBatch>,
) -> Result<Vec<SequencedBatch>, ApplyError> {
    let ids: Vec<&[u8]> = batches.iter().map(|placed| placed.batch.id.0.as_slice()).collect();
    let known = load_applied_batches(transaction, &ids).await?;
    let mut seen = HashSet::new();
    Ok(batches
        .into_iter()
        .filter(|p| !known.contains(p.batch.id.0.as_slice()) && seen.insert(p.batch.id))
        .collect())
}

enum BisectStep {
    Halves(Vec<SequencedBatch>, Vec<SequencedBatch>),
    Single(Box<SequencedBatch>),
}

fn bisect(mut group: Vec<SequencedBatch>) -> BisectStep {
    if group.len() > 1 {
        let right = group.split_off(group.len() / 2);
        return BisectStep::Halves(group, right);
    }
    let placed = group.remove(0);
    match placed.batch.body.split_in_halves() {
        Some((left, right)) => {
            let middle = placed.first_item + left.item_count();
            let part = |body: Body, first_item: usize| SequencedBatch {
                first_item,
                batch: RecordBatch { body, ..placed.batch.clone() },
                ..placed.clone()
            };
            BisectStep::Halves(vec![part(left, placed.first_item)], vec![part(right, middle)])
        }
        None => BisectStep::Single(Box::new(placed)),
    }
}

fn to_dead_letter(
    fact_set: &str,
    placed: &SequencedBatch,
    code: String,
    reason: String,
) -> Result<DeadLetter, ApplyError> {
    let batch = &placed.batch;
    let shown = batch.body.rows_json().map_or_else(|error| error_chain(&error), |rows| rows.to_string());
    Ok(DeadLetter {
        fact_set: fact_set.to_owned(),
        sequence: placed.sequence.to_i64(),
        item: row_number(placed.first_item)?,
        code,
        reason: to_printable(reason.as_bytes()),
        subject: placed.subject.clone(),
        frame: Some(batch.id.to_string()),
        source: Some(to_printable(batch.source.as_bytes())),
        file: Some(to_printable(batch.file.as_bytes())),
        line: batch.body.first_line().and_then(|line| i64::try_from(line).ok()),
        payload: to_printable(shown.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use event_log::record_batch::BatchId;
    use market::event::Reject;

    use super::*;

    fn placed(rows: u64) -> SequencedBatch {
        let reject = |line| Reject {
            file: "f".to_owned(),
            line,
            reason: "r".to_owned(),
            message: "m".to_owned(),
            row: String::new(),
            columns: None,
        };
        let batch = RecordBatch {
            id: BatchId::default(),
            source: "test".to_owned(),
            run: "run".to_owned(),
            chunk: 0,
            file: "f".to_owned(),
            line: 1,
            body: Body::Rejects((1..=rows).map(reject).collect()),
        };
        SequencedBatch { sequence: Sequence::default(), subject: "s".to_owned(), first_item: 1, batch }
    }

    #[test]
    fn bisection_yields_every_row_once() {
        let (mut open, mut items) = (vec![vec![placed(7)]], BTreeSet::new());
        while let Some(group) = open.pop() {
            match bisect(group) {
                BisectStep::Halves(left, right) => open.extend([left, right]),
                BisectStep::Single(placed) => {
                    assert_eq!(placed.batch.body.first_line(), Some(placed.first_item as u64));
                    assert!(items.insert(placed.first_item));
                }
            }
        }
        assert_eq!(items, (1..=7).collect());
    }

    #[test]
    fn batches_are_bisected_before_rows() {
        let BisectStep::Halves(left, right) = bisect(vec![placed(2), placed(3), placed(4)]) else {
            panic!("three batches are not one row")
        };
        let rows = |group: &[SequencedBatch]| {
            group.iter().map(|placed| placed.batch.body.row_count()).collect::<Vec<_>>()
        };
        assert_eq!((rows(&left), rows(&right)), (vec![2], vec![3, 4]));
    }
}
