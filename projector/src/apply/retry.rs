//! `projector dead-letters retry` and `projector dead-letters export`. Both read the messages of dead letters from the
//! log again.

use std::collections::BTreeSet;

use anyhow::Context;
use async_nats::jetstream::Context as LogContext;
use async_nats::jetstream::stream::Stream;
use event_log::message::LogMessage;
use event_log::record_batch::{BatchError, Body, RecordBatch};
use event_log::sequence::Sequence;
use event_log::stream::StreamSettings;
use serde_json::{Map, Value};
use store::db;

use crate::apply::DeadLetterEntry;
use crate::apply::batch::reapply_message;
use crate::settings::DatabaseArgs;

const STAGING: &str = include_str!("../../queries/staging.sql");
const LOCK: &str = include_str!("../../queries/fact_set_lock.sql");
const TAKE_LEASE: &str = include_str!("../../queries/lease_take.sql");
const APPLIED: &str = include_str!("../../queries/dead_letters_applied.sql");
const RECOMPUTE: &str = include_str!("../../queries/recompute.sql");

/// Retries dead letters: applies their messages to the facts again. Returns the number of dead letters that were
/// applied.
///
/// The affected securities are marked as dirty. The running projector then derives their read tables again.
pub async fn retry_dead_letters(
    database: &DatabaseArgs,
    log: &StreamSettings,
    letters: &[DeadLetterEntry],
) -> anyhow::Result<u64> {
    let (context, stream) = open_log(log).await?;
    let messages: BTreeSet<(&str, Sequence)> =
        letters.iter().map(|letter| (letter.fact_set.as_str(), letter.sequence)).collect();
    let mut applied = 0;
    for (fact_set, sequence) in messages {
        let mut client = db::connect_migrated(&database.projector_config(fact_set)?).await?;
        client.batch_execute(STAGING).await?;
        let mut transaction = client.transaction().await?;
        transaction.query_one(LOCK, &[&fact_set]).await?;
        // A retry changes facts that a running projector may have cached. The retry therefore takes the lease, so that
        // the running projector restarts with an empty cache.
        transaction.execute(TAKE_LEASE, &[&fact_set]).await?;
        let message = fetch_message(&context, log, sequence).await?;
        let failed = reapply_message(&mut transaction, fact_set, &message, &stream).await?;
        let failed: Vec<i32> = failed.iter().map(|letter| letter.item).collect();
        applied += transaction.execute(APPLIED, &[&fact_set, &sequence, &failed]).await?;
        transaction.execute(RECOMPUTE, &[]).await?;
        transaction.commit().await?;
    }
    Ok(applied)
}

/// Reads the rows of dead letters from the log, in the canonical feed format. The rows can be corrected and loaded
/// again. Also returns the dead letters whose messages cannot be decoded.
pub async fn export_rows<'a>(
    log: &StreamSettings,
    letters: &'a [DeadLetterEntry],
) -> anyhow::Result<(Vec<Value>, Vec<&'a DeadLetterEntry>)> {
    let (context, _) = open_log(log).await?;
    let (mut records, mut unreadable) = (Vec::new(), Vec::new());
    for letter in letters {
        let message = fetch_message(&context, log, letter.sequence).await?;
        let batches = message.decode_batches().unwrap_or_default();
        let item = usize::try_from(letter.item).ok().and_then(|item| item.checked_sub(1));
        match item.and_then(|item| locate_item(&batches, item)) {
            Some((body, item)) => records.extend(item_rows(body, item)?),
            None => unreadable.push(letter),
        }
    }
    Ok((records, unreadable))
}

/// Finds the record batch with an item of a message. Returns its body, and the item's index in this body.
fn locate_item(batches: &[RecordBatch], item: usize) -> Option<(&Body, usize)> {
    let mut before = 0;
    batches.iter().find_map(|batch| {
        let here = item.checked_sub(before).filter(|here| *here < batch.body.item_count());
        before += batch.body.item_count();
        here.map(|here| (&batch.body, here))
    })
}

/// Records of an item in the canonical feed format. An item is one row, or all bars of one symbol.
fn item_rows(body: &Body, item: usize) -> Result<Vec<Value>, BatchError> {
    let kind = body.kind();
    let rows = match body {
        Body::Prices(series) => Body::Prices(series.get(item).cloned().into_iter().collect()).rows_json()?,
        _ => body.rows_json()?.get(item).cloned().into_iter().collect(),
    };
    Ok(rows.as_array().into_iter().flatten().map(|row| canonical_record(kind.as_str(), row)).collect())
}

/// Converts a row to the canonical feed format. The fields inside `record` move to the top level. The field `line` is
/// omitted, and fields with the value null are omitted.
fn canonical_record(kind: &str, row: &Value) -> Value {
    let mut record = Map::from_iter([("kind".to_owned(), Value::from(kind))]);
    for (name, value) in row.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        match (name.as_str(), value) {
            ("record", Value::Object(fields)) => {
                record.extend(fields.clone().into_iter().filter(|(_, value)| !value.is_null()));
            }
            ("line", _) => {}
            _ => drop(record.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(record)
}

async fn open_log(log: &StreamSettings) -> anyhow::Result<(LogContext, Stream)> {
    let context = log.connect("projector-dead-letters").await?;
    let stream = log.open_existing(&context).await?;
    Ok((context, stream))
}

async fn fetch_message(
    context: &LogContext,
    log: &StreamSettings,
    sequence: Sequence,
) -> anyhow::Result<LogMessage> {
    let found = LogMessage::fetch(context, &log.nats_stream, sequence.to_u64()).await?;
    found.with_context(|| format!("cannot read message {sequence}: the log has none there"))
}
