//! Messages and rows that could not be applied: kept with reason and provenance, in the batch's own transaction.

use event_log::sequence::Sequence;
use store::copy::copy_into;
use store::copy_row;
use store::db::DbError;
use tokio_postgres::Transaction;

/// One row or message set aside. `item` 0 is the whole message, n is its n-th row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Of the message in the log.
    pub sequence: Sequence,
    /// 0 for the whole message, else the row's number in it, from 1.
    pub item: i32,
    /// Stable code, for example `bad_json`.
    pub code: String,
    /// The error with its causes, for people.
    pub reason: String,
    /// Subject that the message was published on.
    pub subject: String,
    /// Id of the frame; `None` when the message's headers name none.
    pub frame: Option<String>,
    /// The source that the row is of; `None` when a message that cannot be read does not say.
    pub source: Option<String>,
    /// File that the row was loaded from; `None` when a message that cannot be read does not say.
    pub file: Option<String>,
    /// Line of the row in its file; `None` for a whole message or where it is not known.
    pub line: Option<i64>,
    /// What could not be applied, as [`to_printable`] text.
    pub payload: String,
}

copy_row! {
    struct DeadLetterRow<'a> in "staged_dead_letters" {
        fact_set: &'a str,
        sequence: i64,
        item: i32,
        code: &'a str,
        reason: &'a str,
        subject: &'a str,
        frame: Option<&'a str>,
        source: Option<&'a str>,
        file: Option<&'a str>,
        line: Option<i64>,
        payload: &'a str,
    }
}

impl DeadLetter {
    fn copy_row<'a>(&'a self, fact_set: &'a str) -> DeadLetterRow<'a> {
        DeadLetterRow {
            fact_set,
            sequence: self.sequence.bigint(),
            item: self.item,
            code: &self.code,
            reason: &self.reason,
            subject: &self.subject,
            frame: self.frame.as_deref(),
            source: self.source.as_deref(),
            file: self.file.as_deref(),
            line: self.line,
            payload: &self.payload,
        }
    }
}

/// Bytes of a payload that are kept for people.
const MAX_PAYLOAD_BYTES: usize = 4096;

const INSERT: &str = include_str!("../../queries/dead_letters_insert.sql");

/// Records the letters; one already recorded stays as it is.
pub async fn insert_dead_letters(
    transaction: &Transaction<'_>,
    fact_set: &str,
    letters: &[DeadLetter],
) -> Result<(), DbError> {
    if letters.is_empty() {
        return Ok(());
    }
    let rows: Vec<DeadLetterRow<'_>> = letters.iter().map(|letter| letter.copy_row(fact_set)).collect();
    copy_into(transaction, &rows).await?;
    transaction.execute(INSERT, &[]).await?;
    Ok(())
}

/// Bytes as text a person can read and Postgres can store, cut to a bounded length.
pub fn to_printable(payload: &[u8]) -> String {
    let cut = &payload[..payload.len().min(MAX_PAYLOAD_BYTES)];
    String::from_utf8_lossy(cut).replace('\0', "\u{fffd}")
}

/// A dead letter as the operator's commands show it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeadLetterEntry {
    /// The facts that it could not be applied to.
    pub fact_set: String,
    /// Of the message in the log.
    pub sequence: i64,
    /// 0 for the whole message, else the row's number in it, from 1.
    pub item: i32,
    /// Stable code, for example `bad_json`.
    pub code: String,
    /// The error with its causes, for people.
    pub reason: String,
    /// Subject that the message was published on.
    pub subject: String,
    /// Id of the frame; `None` when the message's headers name none.
    pub frame: Option<String>,
    /// The source that the row is of, where it is known.
    pub source: Option<String>,
    /// File that the row was loaded from, where it is known.
    pub file: Option<String>,
    /// Line of the row in its file; `None` for a whole message or where it is not known.
    pub line: Option<i64>,
    /// `held`, `discarded` or `applied`.
    pub status: String,
    /// What could not be applied, as [`to_printable`] text.
    pub payload: String,
}

const LIST: &str = include_str!("../../queries/dead_letters_list.sql");
const DISCARD: &str = include_str!("../../queries/dead_letters_discard.sql");

/// Dead letters in log order: all held ones, or those of one message.
pub async fn list_dead_letters(
    client: &tokio_postgres::Client,
    sequence: Option<i64>,
) -> Result<Vec<DeadLetterEntry>, DbError> {
    let rows = client.query(LIST, &[&sequence]).await?;
    rows.iter()
        .map(|row| {
            Ok(DeadLetterEntry {
                fact_set: row.try_get("fact_set")?,
                sequence: row.try_get("sequence")?,
                item: row.try_get("item")?,
                code: row.try_get("code")?,
                reason: row.try_get("reason")?,
                subject: row.try_get("subject")?,
                frame: row.try_get("frame")?,
                source: row.try_get("source")?,
                file: row.try_get("file")?,
                line: row.try_get("line")?,
                status: row.try_get("status")?,
                payload: row.try_get("payload")?,
            })
        })
        .collect()
}

/// Marks a held letter as looked at and not wanted; it stays in the table.
pub async fn discard_dead_letter(
    client: &tokio_postgres::Client,
    sequence: i64,
    item: i32,
) -> Result<bool, DbError> {
    Ok(client.execute(DISCARD, &[&sequence, &item]).await? > 0)
}
