//! Index of record batches: the place of each record batch in the log.

/// Id of a record batch.
pub type BatchId = [u8; 16];

/// Place of a record batch in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedBatch {
    /// Sequence of the log message that contains the batch.
    pub sequence: i64,
    /// True for a batch of prices.
    pub has_prices: bool,
}

/// Index of the places of record batches that were already read from Postgres. A place that is not in the index is read
/// from Postgres.
pub trait BatchIndex {
    /// Place of a batch; `None` if the index does not contain the batch.
    fn find(&self, batch: &BatchId) -> Option<LoggedBatch>;
    /// Adds the place of a batch, after it was read from Postgres.
    fn insert(&self, batch: BatchId, place: LoggedBatch);
}

/// Index that contains no record batches.
#[derive(Debug, Clone, Copy)]
pub struct EmptyBatchIndex;

impl BatchIndex for EmptyBatchIndex {
    fn find(&self, _: &BatchId) -> Option<LoggedBatch> {
        None
    }
    fn insert(&self, _: BatchId, _: LoggedBatch) {}
}
