//! Messages and rows that could not be applied: kept with reason and provenance, in the batch's own transaction.

use schema::db::{DbError, copy_values};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

/// One row or message set aside. `item` 0 is the whole message, n is its n-th row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub sequence: u64,
    pub item: i32,
    /// Stable code, for example `bad_json`.
    pub code: String,
    pub reason: String,
    pub subject: String,
    pub frame: Option<String>,
    pub source: Option<String>,
    pub file: Option<String>,
    pub line: Option<i64>,
    pub payload: String,
}

/// Bytes of a payload that are kept for people.
const PAYLOAD_LIMIT: usize = 4096;

const STAGE: &str = "copy staged_dead_letters (fact_set, sequence, item, code, reason, subject, frame, source, file, line, payload) from stdin binary";
const INSERT: &str = include_str!("../queries/dead_letters_insert.sql");

/// Records the letters; one already recorded stays as it is.
pub async fn record(
    transaction: &Transaction<'_>,
    fact_set: &str,
    letters: &[DeadLetter],
) -> Result<(), DbError> {
    if letters.is_empty() {
        return Ok(());
    }
    let sequences: Vec<i64> = letters.iter().map(|l| i64::try_from(l.sequence).unwrap_or(i64::MAX)).collect();
    let tuples = letters.iter().zip(&sequences).map(|(l, sequence)| {
        let values: Vec<&(dyn ToSql + Sync)> = vec![
            &fact_set as _,
            sequence,
            &l.item,
            &l.code,
            &l.reason,
            &l.subject,
            &l.frame,
            &l.source,
            &l.file,
            &l.line,
            &l.payload,
        ];
        values
    });
    let types = [
        Type::TEXT,
        Type::INT8,
        Type::INT4,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
    ];
    copy_values(transaction, STAGE, &types, tuples).await?;
    transaction.execute(INSERT, &[]).await?;
    Ok(())
}

/// Bytes as text a person can read and Postgres can store, cut to a bounded length.
pub fn printable(payload: &[u8]) -> String {
    let cut = &payload[..payload.len().min(PAYLOAD_LIMIT)];
    String::from_utf8_lossy(cut).replace('\0', "\u{fffd}")
}
