//! Encoder of the rows of one file as record batches. Each kind has its own chunk numbers.

use bytes::Bytes;
use event_log::record_batch::{BatchError, Body, Codec};
use market::event::Kind;

use crate::batch::row_accumulator::RowChunk;
use crate::batch::row_review::ReviewedRows;
use crate::price::price_batch::PriceBatch;

/// Encoded record batch without its id, source, run and file.
#[derive(Debug, Clone)]
pub(crate) struct EncodedBatch {
    pub kind: Kind,
    pub codec: Codec,
    /// Number of the batch within its file and kind, from 0.
    pub chunk: u64,
    pub rows: u64,
    pub line: u64,
    pub body: Bytes,
}

/// Encoder for the row chunks of one file, in order.
#[derive(Debug, Default)]
pub(crate) struct ChunkEncoder {
    /// Next chunk number of each kind.
    chunks: [u64; Kind::ALL.len()],
    /// Number of prices that were rounded to the scale of their symbol's series. One much larger price makes this scale
    /// coarser.
    pub rounded: u64,
    /// Copies of the encoded rows, for a review; `None` if no review is requested.
    pub reviewed: Option<ReviewedRows>,
}

impl ChunkEncoder {
    /// Encodes the rows of a chunk, and passes each record batch to `emit`. Returns the emptied price batch for reuse;
    /// `None` for kinds other than price.
    pub(crate) fn encode(
        &mut self,
        chunk: RowChunk,
        emit: &mut dyn FnMut(EncodedBatch),
    ) -> Result<Option<PriceBatch>, BatchError> {
        match chunk {
            RowChunk::Rows(body, line) => {
                emit(self.encode_body(body, line)?);
                Ok(None)
            }
            RowChunk::Prices(mut batch, symbols) => {
                let cut = batch.cut_into_record_batches(&symbols);
                self.rounded += cut.rounded;
                for series in cut.batches {
                    emit(self.encode_body(Body::Prices(series.series), series.line)?);
                }
                batch.clear();
                Ok(Some(batch))
            }
        }
    }

    fn encode_body(&mut self, body: Body, line: u64) -> Result<EncodedBatch, BatchError> {
        if let Some(reviewed) = &mut self.reviewed {
            reviewed.add_body(&body);
        }
        let (codec, bytes) = body.encode()?;
        let kind = body.kind();
        let next = &mut self.chunks[kind as usize];
        let chunk = std::mem::replace(next, *next + 1);
        Ok(EncodedBatch { kind, codec, chunk, rows: body.row_count() as u64, line, body: bytes })
    }
}
