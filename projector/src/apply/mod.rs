//! Applies the messages of the log to the facts (the tables with the loaded rows).
//!
//! Dead letters: messages and rows that could not be applied, stored with reason and origin.

pub mod batch;
pub mod consumer;
pub mod retry;
pub mod run_records;
pub(crate) mod touched_rows;

use event_log::sequence::Sequence;
use store::copy::copy_into;
use store::db::DbError;
use store::{copy_row, find_rows, sql_row};
use tokio_postgres::Transaction;

copy_row! {
    /// One row or message that could not be applied.
    pub struct DeadLetter in "staged_dead_letters" {
        /// Fact set (one set of fact tables) to which the row could not be applied.
        fact_set: String,
        /// Sequence of the log message.
        sequence: i64,
        /// Number of the item within the message, from 1; 0 for the whole message. An item is one row, or all bars of
        /// one symbol.
        item: i32,
        /// Stable code of the error, for example `bad_json`.
        code: String,
        /// Text of the error and of its causes.
        reason: String,
        /// NATS subject of the message.
        subject: String,
        /// Id of the record batch; `None` if the headers contain no id.
        frame: Option<String>,
        /// Source of the row; `None` if the headers contain no source.
        source: Option<String>,
        /// File from which the row was loaded; `None` if the headers contain no file.
        file: Option<String>,
        /// Line of the row in its file; `None` for a whole message or an unknown line.
        line: Option<i64>,
        /// Content of the refused row or message, converted by [`to_printable`].
        payload: String,
    }
}

/// Maximum number of payload bytes that are stored.
const MAX_PAYLOAD_BYTES: usize = 4096;

const INSERT: &str = include_str!("../../queries/dead_letters_insert.sql");

/// Inserts dead letters. Dead letters that are already stored stay unchanged.
pub async fn insert_dead_letters(
    transaction: &Transaction<'_>,
    letters: &[DeadLetter],
) -> Result<(), DbError> {
    if !letters.is_empty() {
        copy_into(transaction, letters).await?;
        transaction.execute(INSERT, &[]).await?;
    }
    Ok(())
}

/// Converts the first 4096 bytes of a payload to text that Postgres can store: valid UTF-8 without NUL.
pub fn to_printable(payload: &[u8]) -> String {
    let cut = &payload[..payload.len().min(MAX_PAYLOAD_BYTES)];
    String::from_utf8_lossy(cut).replace('\0', "\u{fffd}")
}

sql_row! {
    /// Stored dead letter, with the fields that `projector dead-letters` prints.
    #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
    pub struct DeadLetterEntry {
        /// Fact set (one set of fact tables) to which the row could not be applied.
        pub fact_set: String,
        /// Sequence of the log message.
        pub sequence: Sequence,
        /// Number of the item within the message, from 1; 0 for the whole message. An item is one row, or all bars of
        /// one symbol.
        pub item: i32,
        /// Stable code of the error, for example `bad_json`.
        pub code: String,
        /// Text of the error and of its causes.
        pub reason: String,
        /// NATS subject of the message.
        pub subject: String,
        /// Id of the record batch; `None` if the headers contain no id.
        pub frame: Option<String>,
        /// Source of the row; `None` if the headers contain no source.
        pub source: Option<String>,
        /// File from which the row was loaded; `None` if the headers contain no file.
        pub file: Option<String>,
        /// Line of the row in its file; `None` for a whole message or an unknown line.
        pub line: Option<i64>,
        /// Status: `held` (not yet decided), `discarded` or `applied`.
        pub status: String,
        /// Content of the refused row or message, converted by [`to_printable`].
        pub payload: String,
    }
}

const LIST: &str = include_str!("../../queries/dead_letters_list.sql");
const DISCARD: &str = include_str!("../../queries/dead_letters_discard.sql");

/// Dead letters of the message `sequence`. If `sequence` is `None`, all dead letters with the status `held`. Sorted by
/// fact set, sequence and item.
pub async fn list_dead_letters(
    client: &tokio_postgres::Client,
    sequence: Option<Sequence>,
) -> Result<Vec<DeadLetterEntry>, DbError> {
    Ok(find_rows(client, LIST, &[&sequence]).await?)
}

/// Discards the undecided dead letters of this sequence and item. Returns `false` if there are none.
pub async fn discard_dead_letter(
    client: &tokio_postgres::Client,
    sequence: Sequence,
    item: i32,
) -> Result<bool, DbError> {
    Ok(client.execute(DISCARD, &[&sequence, &item]).await? > 0)
}
