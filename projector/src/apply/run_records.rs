//! Records of ingest runs: applied record batches, rejected input rows, manifests and states of runs.
//!
//! An event can hold, exclude or release a run, and a manifest can list record batches of other runs. A record batch whose
//! visibility changes is read again from the log. The rows of its symbols are then divided again into the observations that
//! count and all others.

use std::collections::HashSet;

use async_nats::jetstream::stream::Stream;
use event_log::record_batch::{BatchId, Body, RecordBatch, batch_ids_of_run};
use event_log::sequence::Sequence;
use market::event::{Kind, RunChange, RunEvent, RunIdError, RunManifest, RunState, find_run_id};
use market::row::JsonColumn;
use store::copy::copy_into;
use store::copy_row;
use store::db::DbError;
use store::view::{self, BatchOwners, RunStates, View};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use crate::apply::to_printable;
use crate::apply::touched_rows::{TouchedRows, changed_batches};
use crate::error::ApplyError;
use crate::facts::ChangedFacts;
use crate::facts::dividend_feeds::update_feed_years;
use crate::facts::prices::divide_years;
use crate::facts::records::{RowsToDivide, divide_records};

const KNOWN_BATCHES: &str = include_str!("../../queries/frames_known.sql");
const INSERT_BATCHES: &str = include_str!("../../queries/frames_insert.sql");
const INSERT_REJECTS: &str = include_str!("../../queries/rejects_insert.sql");
const INSERT_RUN: &str = include_str!("../../queries/runs_insert.sql");

copy_row! {
    struct BatchRow<'a> in "staged_frames" {
        frame: &'a [u8],
        sequence: i64,
        kind: Kind,
        source: &'a str,
        run: &'a str,
        file: &'a str,
        line: i64,
        rows: i32,
    }
}

copy_row! {
    struct RejectRow<'a> in "staged_rejects" {
        frame: &'a [u8],
        item: i32,
        run: &'a str,
        source: &'a str,
        file: &'a str,
        line: i64,
        reason: &'a str,
        message: &'a str,
        row: &'a str,
    }
}

/// Returns those of `ids` whose record batches were already applied.
pub async fn load_applied_batches(
    transaction: &Transaction<'_>,
    ids: &[&[u8]],
) -> Result<HashSet<Vec<u8>>, DbError> {
    let rows = transaction.query(KNOWN_BATCHES, &[&ids]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Inserts the applied record batches, each with its provenance (source, run, file and line).
pub async fn insert_batches(
    transaction: &Transaction<'_>,
    batches: &[(Sequence, &RecordBatch)],
) -> Result<(), ApplyError> {
    let rows: Vec<BatchRow<'_>> = batches.iter().map(batch_row).collect::<Result<_, _>>()?;
    copy_into(transaction, &rows).await?;
    transaction.execute(INSERT_BATCHES, &[]).await?;
    Ok(())
}

fn batch_row<'a>((sequence, batch): &(Sequence, &'a RecordBatch)) -> Result<BatchRow<'a>, ApplyError> {
    Ok(BatchRow {
        frame: &batch.id.0,
        sequence: sequence.to_i64(),
        kind: batch.body.kind(),
        source: &batch.source,
        run: &batch.run,
        file: &batch.file,
        line: line_number(batch.line)?,
        rows: row_number(batch.body.row_count())?,
    })
}

/// Inserts the rejected input rows and the run manifests (descriptions of ingest runs) that `batches` contain.
pub async fn insert_run_records(
    transaction: &Transaction<'_>,
    batches: &[(Sequence, &RecordBatch)],
) -> Result<(), ApplyError> {
    let mut rejects = Vec::new();
    for (sequence, batch) in batches {
        match &batch.body {
            Body::Rejects(rows) => {
                for (reject, item) in rows.iter().zip(1..) {
                    rejects.push(RejectRow {
                        frame: &batch.id.0,
                        item,
                        run: &batch.run,
                        source: &batch.source,
                        file: &reject.file,
                        line: line_number(reject.line)?,
                        reason: &reject.reason,
                        message: &reject.message,
                        row: &reject.row,
                    });
                }
            }
            Body::Run(RunEvent::Manifest(run)) => {
                let (state, sequence) = (run.state.as_str(), sequence.to_i64());
                transaction.execute(INSERT_RUN, &[&run.run, &state, &sequence, &JsonColumn(run)]).await?;
            }
            _ => {}
        }
    }
    if !rejects.is_empty() {
        copy_into(transaction, &rejects).await?;
        transaction.execute(INSERT_REJECTS, &[]).await?;
    }
    Ok(())
}

fn line_number(line: u64) -> Result<i64, ApplyError> {
    i64::try_from(line).map_err(|_| too_large_error("a line number exceeds the range of bigint"))
}

/// Converts a row count, or the number of a row within its message, to a Postgres `integer`. Fails if the number is too
/// large.
pub(super) fn row_number(rows: usize) -> Result<i32, ApplyError> {
    i32::try_from(rows).map_err(|_| too_large_error("it has more than 2147483647 rows"))
}

const RUNS_WITH_PREFIX: &str = "select distinct run from facts.runs where starts_with(run, $1)";

/// Id of the run in the live facts with this id, or with this beginning of its id. A text that fits no run is returned
/// unchanged, because the log may have runs that are not applied yet.
///
/// # Errors
/// Several runs fit.
pub(crate) async fn find_run(client: &Client, text: &str) -> anyhow::Result<String> {
    let rows = client.query(RUNS_WITH_PREFIX, &[&text]).await?;
    let runs: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    match find_run_id(text, runs.iter().map(String::as_str)) {
        Ok(run) => Ok(run.to_owned()),
        Err(RunIdError::Unknown(_)) => Ok(text.to_owned()),
        Err(error) => Err(error.into()),
    }
}

fn too_large_error(reason: &'static str) -> ApplyError {
    ApplyError::Unstorable { symbol: "a record batch".to_owned(), code: "too_large", reason }
}

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

/// Applies the manifests and the changes of state among `batches`. `states` has the states before.
pub(crate) async fn apply_run_events(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[(Sequence, &RecordBatch)],
    states: &RunStates,
    log: &Stream,
) -> Result<ChangedFacts, ApplyError> {
    let (mut manifests, mut changed) = (Vec::new(), ChangedFacts::default());
    for (sequence, batch) in batches {
        match &batch.body {
            Body::Run(RunEvent::Manifest(run)) => manifests.push((*sequence, run.as_ref())),
            Body::Run(RunEvent::Change(change)) => {
                changed.extend(apply_change(transaction, fact_set, *sequence, change, states, log).await?);
            }
            _ => {}
        }
    }
    changed.extend(apply_listings(transaction, fact_set, &manifests, states, log).await?);
    Ok(changed)
}

/// Applies the change of a run's state.
async fn apply_change(
    transaction: &Transaction<'_>,
    fact_set: &str,
    sequence: Sequence,
    change: &RunChange,
    states: &RunStates,
    log: &Stream,
) -> Result<ChangedFacts, ApplyError> {
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
) -> Result<ChangedFacts, ApplyError> {
    let (mut ids, mut runs, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    for (sequence, run) in manifests.iter().filter(|(_, run)| run.state == RunState::Completed) {
        for id in batch_ids_of_run(run) {
            ids.push(id);
            runs.push(run.run.as_str());
            sequences.push(sequence.to_i64());
        }
    }
    let Some((last, _)) = manifests.last().filter(|_| !ids.is_empty()) else {
        return Ok(ChangedFacts::default());
    };
    let ids: Vec<&[u8]> = ids.iter().map(|BatchId(id)| id.as_slice()).collect();
    let before = match states.is_empty() {
        true => BatchOwners::default(),
        false => BatchOwners::load(transaction, &ids).await?,
    };
    transaction.execute(INSERT_LISTINGS, &[&ids, &runs, &sequences]).await?;
    if states.is_empty() {
        return Ok(ChangedFacts::default());
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
    fn is_visible(&self, batch: &view::BatchId) -> bool {
        self.owners.is_visible(batch, &self.states, &View::newest())
    }
}

/// Divides the rows of all batches whose visibility changed.
async fn divide_again(
    transaction: &Transaction<'_>,
    fact_set: &str,
    sequence: Sequence,
    [before, after]: [&Visibility; 2],
    log: &Stream,
) -> Result<ChangedFacts, ApplyError> {
    let counts = |id: &view::BatchId| [before, after].map(|visibility| visibility.is_visible(id));
    let (changed, sequences) = changed_batches(&after.owners, counts);
    if changed.is_empty() {
        return Ok(ChangedFacts::default());
    }
    let touched = TouchedRows::read(transaction, log, &changed, sequences).await?;
    let rows = RowsToDivide::stored(touched.records);
    let mut divided =
        ChangedFacts { symbols: divide_records(transaction, rows, &after.states).await?, years: Vec::new() };
    let years = touched.years.into_iter().map(|key| (key, Vec::new())).collect();
    divided.extend(divide_years(transaction, years, &after.states).await?);
    update_feed_years(transaction, fact_set, &touched.feed_years, sequence).await?;
    let symbols = divided.all_symbols();
    // A security may begin or end to exist, so the securities are resolved again.
    let references = vec![true; symbols.len()];
    transaction.execute(MARK_DIRTY, &[&fact_set, &symbols, &references]).await?;
    tracing::info!(batches = changed.len(), symbols = symbols.len(), "visibility of record batches changed");
    Ok(divided)
}
