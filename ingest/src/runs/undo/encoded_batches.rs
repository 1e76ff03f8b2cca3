//! Record batches of an undo, cut at a fixed number of rows, so that the same undo gives the same batches.

use event_log::record_batch::{BatchError, Body};

use crate::batch::chunk_encoder::{ChunkEncoder, EncodedBatch};
use crate::batch::row_accumulator::RowChunk;

/// Number of rows per record batch. It is small enough to keep batches with the largest rows below the message limit.
pub(super) const ROWS_PER_BATCH: usize = 500;

/// Encoded record batches in order.
#[derive(Debug, Default)]
pub(super) struct EncodedBatches {
    encoder: ChunkEncoder,
    pub encoded: Vec<EncodedBatch>,
    pub rows: u64,
}

impl EncodedBatches {
    /// Encodes and adds a record batch.
    pub(super) fn push(&mut self, body: Body) -> Result<(), BatchError> {
        let line = self.rows + 1;
        self.rows += body.row_count() as u64;
        self.encoder.encode(RowChunk::Rows(body, line), &mut |batch| self.encoded.push(batch))?;
        Ok(())
    }
}
