//! Tables for operators: applied record batches, rejected input rows, and ingest runs.

use std::collections::HashSet;

use event_log::record_batch::{Body, RecordBatch};
use event_log::sequence::Sequence;
use market::event::{Kind, RunEvent};
use market::row::JsonColumn;
use store::copy::copy_into;
use store::copy_row;
use store::db::DbError;
use tokio_postgres::Transaction;

use crate::error::ApplyError;

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

fn too_large_error(reason: &'static str) -> ApplyError {
    ApplyError::Unstorable { symbol: "a record batch".to_owned(), code: "too_large", reason }
}
