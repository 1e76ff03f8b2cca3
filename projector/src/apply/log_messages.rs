//! Reader of log messages by their sequences.

use async_nats::jetstream::stream::Stream;
use event_log::record_batch::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};

use crate::error::ConsumeError;

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
