//! Index of record batches: the place of each record batch in the log.

use crate::view::{BatchId, LoggedBatch};

/// Index from the id of a record batch to its place in the log. It is a cache: the caller reads a missing place from
/// Postgres and then adds it.
pub trait BatchIndex {
    /// Place of a batch; `None` if the index does not contain the batch.
    fn find(&self, batch: &BatchId) -> Option<LoggedBatch>;
    /// Adds the place of a batch, after it was read from Postgres.
    fn insert(&self, batch: BatchId, place: LoggedBatch);
}

/// Index that is always empty, for callers without a cache. The place of every record batch is read from Postgres.
#[derive(Debug, Clone, Copy)]
pub struct EmptyBatchIndex;

impl BatchIndex for EmptyBatchIndex {
    fn find(&self, _: &BatchId) -> Option<LoggedBatch> {
        None
    }
    fn insert(&self, _: BatchId, _: LoggedBatch) {}
}
