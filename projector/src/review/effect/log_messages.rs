//! Reader of log messages by their sequences.

use anyhow::Context;
use async_nats::jetstream::stream::Stream;
use event_log::record_batch::RecordBatch;
use event_log::stream::StreamSettings;
use futures::{StreamExt, TryStreamExt, stream};
use market::event::Kind;

/// Feed: a kind of rows, and their source.
pub(super) type Feed = (Kind, String);

/// Maximum number of messages that are requested at the same time.
const CONCURRENT_READS: usize = 16;

/// Connection to the log.
pub(super) struct LogMessages(Stream);

impl LogMessages {
    pub(super) async fn open(settings: &StreamSettings) -> anyhow::Result<Self> {
        let context = settings.connect("projector-audit").await?;
        Ok(Self(settings.open_existing(&context).await?))
    }

    /// Reads the messages with these sequences, in this order. Calls `each` for every record batch in them.
    pub(super) async fn read(
        &self,
        sequences: impl IntoIterator<Item = i64>,
        mut each: impl FnMut(RecordBatch) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let reads = stream::iter(sequences).map(async |sequence| {
            let cannot = || format!("cannot read message {sequence} of the log");
            let message = self.0.get_raw_message(sequence.unsigned_abs()).await.with_context(cannot)?;
            RecordBatch::decode(Some(&message.headers), &message.payload).with_context(cannot)
        });
        let mut messages = std::pin::pin!(reads.buffered(CONCURRENT_READS));
        while let Some(batches) = messages.try_next().await? {
            batches.into_iter().try_for_each(&mut each)?;
        }
        Ok(())
    }
}
