//! States of runs: applies the events that hold, exclude or release a run, and the manifests that list record batches of
//! other runs.
//!
//! A record batch whose visibility changes is read again from the log. The rows of its symbols are then divided again into the
//! observations that count and all others.

use std::collections::{BTreeSet, HashSet};

use async_nats::jetstream::stream::Stream;
use event_log::record_batch::{BatchId, Body, RecordBatch, batch_ids_of_run};
use event_log::sequence::Sequence;
use market::event::{RunChange, RunEvent, RunManifest, RunState};
use store::view::{BatchOwners, RunStates, View};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::apply::dead_letters::to_printable;
use crate::apply::touched_rows::TouchedRows;
use crate::error::ApplyError;
use crate::facts::dividend_feeds::update_feed_years;
use crate::facts::prices::divide_years;
use crate::facts::records::{RowsToDivide, divide_records};

const INSERT_CHANGE: &str = include_str!("../../queries/run_changes_insert.sql");
const INSERT_LISTINGS: &str = include_str!("../../queries/batch_runs_insert.sql");
const MARK_DIRTY: &str = include_str!("../../queries/records_mark_dirty.sql");

/// Record batches among `batches` that do not count, because all their runs are held or excluded.
pub(crate) async fn find_hidden(
    transaction: &Transaction<'_>,
    batches: &[&RecordBatch],
    states: &RunStates,
) -> Result<HashSet<BatchId>, ApplyError> {
    let newest = View::newest();
    let suspects = batches.iter().filter(|batch| !states.is_visible(&batch.run, &newest));
    let suspects: Vec<&[u8]> = suspects.map(|batch| batch.id.0.as_slice()).collect();
    if suspects.is_empty() {
        return Ok(HashSet::new());
    }
    let owners = BatchOwners::load(transaction, &suspects).await?;
    let places = owners.places().map(|(id, _)| BatchId(*id));
    Ok(places.filter(|id| !owners.is_visible(&id.0, states, &newest)).collect())
}

/// Applies the manifests and the changes of state among `batches`. `states` has the states before. Returns the symbols
/// whose facts changed.
pub(crate) async fn apply_run_events(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[(Sequence, &RecordBatch)],
    states: &RunStates,
    log: &Stream,
) -> Result<Vec<String>, ApplyError> {
    let (mut manifests, mut symbols) = (Vec::new(), Vec::new());
    for (sequence, batch) in batches {
        match &batch.body {
            Body::Run(RunEvent::Manifest(run)) => manifests.push((*sequence, run.as_ref())),
            Body::Run(RunEvent::Change(change)) => {
                symbols.extend(apply_change(transaction, fact_set, *sequence, change, states, log).await?);
            }
            _ => {}
        }
    }
    symbols.extend(apply_listings(transaction, fact_set, &manifests, states, log).await?);
    Ok(symbols)
}

/// Applies the change of a run's state.
async fn apply_change(
    transaction: &Transaction<'_>,
    fact_set: &str,
    sequence: Sequence,
    change: &RunChange,
    states: &RunStates,
    log: &Stream,
) -> Result<Vec<String>, ApplyError> {
    let owners = BatchOwners::load_of_run(transaction, &change.run).await?;
    let before = Visibility { owners: owners.clone(), states: states.clone() };
    let [run, reason, operator] =
        [&change.run, &change.reason, &change.operator].map(|text| to_printable(text.as_bytes()));
    let state = change.new_state.as_str();
    let values: [&(dyn ToSql + Sync); 6] = [&run, &sequence.to_i64(), &state, &reason, &change.at, &operator];
    transaction.execute(INSERT_CHANGE, &values).await?;
    let after = Visibility { owners, states: RunStates::load(transaction).await? };
    divide_again(transaction, fact_set, sequence, [&before, &after], log).await
}

/// Stores which record batches of other runs the manifests list. A listed batch of a run that is held or excluded may
/// become visible.
async fn apply_listings(
    transaction: &Transaction<'_>,
    fact_set: &str,
    manifests: &[(Sequence, &RunManifest)],
    states: &RunStates,
    log: &Stream,
) -> Result<Vec<String>, ApplyError> {
    let (mut ids, mut runs, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    for (sequence, run) in manifests.iter().filter(|(_, run)| run.state == RunState::Completed) {
        for id in batch_ids_of_run(run) {
            ids.push(id);
            runs.push(run.run.as_str());
            sequences.push(sequence.to_i64());
        }
    }
    let Some((last, _)) = manifests.last().filter(|_| !ids.is_empty()) else { return Ok(Vec::new()) };
    let ids: Vec<&[u8]> = ids.iter().map(|BatchId(id)| id.as_slice()).collect();
    let before = match states.is_empty() {
        true => BatchOwners::default(),
        false => BatchOwners::load(transaction, &ids).await?,
    };
    transaction.execute(INSERT_LISTINGS, &[&ids, &runs, &sequences]).await?;
    if states.is_empty() {
        return Ok(Vec::new());
    }
    let before = Visibility { owners: before, states: states.clone() };
    let after = Visibility { owners: BatchOwners::load(transaction, &ids).await?, states: states.clone() };
    divide_again(transaction, fact_set, *last, [&before, &after], log).await
}

/// Owners of record batches and states of runs: whether a batch counts now.
struct Visibility {
    owners: BatchOwners,
    states: RunStates,
}

impl Visibility {
    fn is_visible(&self, batch: &BatchId) -> bool {
        self.owners.is_visible(&batch.0, &self.states, &View::newest())
    }
}

/// Divides the rows of all batches whose visibility changed.
async fn divide_again(
    transaction: &Transaction<'_>,
    fact_set: &str,
    sequence: Sequence,
    [before, after]: [&Visibility; 2],
    log: &Stream,
) -> Result<Vec<String>, ApplyError> {
    let (mut changed, mut sequences) = (BTreeSet::new(), BTreeSet::new());
    for (id, place) in after.owners.places() {
        let batch = BatchId(*id);
        if before.is_visible(&batch) != after.is_visible(&batch) {
            changed.insert(batch);
            sequences.insert(place.sequence);
        }
    }
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let touched = TouchedRows::read(transaction, log, &changed, sequences).await?;
    let rows = RowsToDivide::stored(touched.records);
    let mut symbols = divide_records(transaction, rows, &after.states).await?;
    let years = touched.years.into_iter().map(|key| (key, Vec::new())).collect();
    symbols.extend(divide_years(transaction, years, &after.states).await?);
    update_feed_years(transaction, fact_set, &touched.feed_years, sequence).await?;
    // A security may begin or end to exist, so the securities are resolved again.
    let references = vec![true; symbols.len()];
    transaction.execute(MARK_DIRTY, &[&fact_set, &symbols, &references]).await?;
    tracing::info!(batches = changed.len(), symbols = symbols.len(), "visibility of record batches changed");
    Ok(symbols)
}
