//! Encoder that turns the rows of one file into record batches. The batches of each kind (for example dividends) are
//! numbered separately.

use std::io;

use bytes::Bytes;
use event_log::record_batch::{BatchError, Body, Codec};
use market::event::Kind;

use crate::batch::reviewed_rows::ReviewedRows;
use crate::batch::row_accumulator::RowChunk;
use crate::price::price_batch::PriceBatch;

/// Encoded record batch, before its id, source, run and file are added.
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
    /// Number of prices that were rounded. A very large price reduces the decimal places of all prices in its series.
    pub rounded: u64,
    /// Encoded rows, for the review at the end of the load. Rows of kinds that the review does not use are dropped.
    pub reviewed: ReviewedRows,
}

impl ChunkEncoder {
    /// Encodes the rows of a chunk, and passes each record batch to `emit`. Returns the emptied price batch for reuse;
    /// `None` for kinds other than price.
    pub(crate) fn encode_chunk(
        &mut self,
        chunk: RowChunk,
        emit: &mut dyn FnMut(EncodedBatch) -> io::Result<()>,
    ) -> io::Result<Option<PriceBatch>> {
        let mut encode = |body: Body, line| {
            let batch = self.encode(&body, line).map_err(io::Error::other)?;
            self.reviewed.add_body(body);
            emit(batch)
        };
        match chunk {
            RowChunk::Rows(body, line) => encode(body, line).map(|()| None),
            RowChunk::Prices(mut batch, symbols) => {
                let cut = batch.cut_into_record_batches(&symbols);
                for series in cut.batches {
                    encode(Body::Prices(series.series), series.line)?;
                }
                self.rounded += cut.rounded;
                batch.clear();
                Ok(Some(batch))
            }
        }
    }

    /// Encodes rows as one record batch. `line` is the source line of the first row.
    pub(crate) fn encode(&mut self, body: &Body, line: u64) -> Result<EncodedBatch, BatchError> {
        let (codec, bytes) = body.encode()?;
        let kind = body.kind();
        let next = &mut self.chunks[kind as usize];
        let chunk = std::mem::replace(next, *next + 1);
        Ok(EncodedBatch { kind, codec, chunk, rows: body.row_count() as u64, line, body: bytes })
    }
}
