//! Index of record batches: the place of each batch in the log.

/// Id of a record batch.
pub type BatchId = [u8; 16];

/// Place of a record batch in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedBatch {
    /// Sequence of the message.
    pub sequence: i64,
    /// True for a batch of prices.
    pub has_prices: bool,
}

/// Places of record batches that are known already, so that only the others are read.
pub trait BatchIndex {
    /// Place of a batch; `None` if it is not known.
    fn find(&self, batch: &BatchId) -> Option<LoggedBatch>;
    /// Adds the place of a batch that was read.
    fn insert(&self, batch: BatchId, place: LoggedBatch);
}

/// Index without any batch.
#[derive(Debug, Clone, Copy)]
pub struct EmptyBatchIndex;

impl BatchIndex for EmptyBatchIndex {
    fn find(&self, _: &BatchId) -> Option<LoggedBatch> {
        None
    }
    fn insert(&self, _: BatchId, _: LoggedBatch) {}
}
