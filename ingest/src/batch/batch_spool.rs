//! Temporary store for a file's record batches until the whole file is accepted. It uses memory up to a limit, then a
//! temporary file.
//!
//! Encoder that turns the rows of one file into record batches. The batches of each kind (for example dividends) are
//! numbered separately.

use std::io;
use std::io::{Read, Seek, Write};

use bytes::Bytes;
use event_log::record_batch::{BODY_VERSION, BatchError, BatchId, Body, Codec, Envelope, schema_name};
use market::event::Kind;
use tempfile::{SpooledTempFile, spooled_tempfile};

use crate::batch::reviewed_rows::ReviewedRows;
use crate::batch::row_accumulator::RowChunk;
use crate::price::price_batch::PriceBatch;

/// Maximum size of the batches in memory, in bytes.
const IN_MEMORY: usize = 32 * 1024 * 1024;

/// Record batches. Their bodies are in memory, or in a temporary file if they are larger than [`IN_MEMORY`].
pub(crate) struct BatchSpool {
    file: SpooledTempFile,
    /// Batches without their bodies, and the lengths of the bodies in bytes.
    batches: Vec<(EncodedBatch, usize)>,
}

impl Default for BatchSpool {
    fn default() -> Self {
        Self { file: spooled_tempfile(IN_MEMORY), batches: Vec::new() }
    }
}

impl BatchSpool {
    pub(crate) fn push(&mut self, mut batch: EncodedBatch) -> io::Result<()> {
        let body = std::mem::take(&mut batch.body);
        self.batches.push((batch, body.len()));
        self.file.write_all(&body).map_err(no_space)
    }

    /// Batches in the order of their addition.
    pub(crate) fn into_record_batches(
        mut self,
    ) -> io::Result<impl Iterator<Item = io::Result<EncodedBatch>>> {
        self.file.rewind()?;
        Ok(self.batches.into_iter().map(move |(batch, length)| {
            let mut body = vec![0; length];
            self.file.read_exact(&mut body)?;
            Ok(EncodedBatch { body: body.into(), ..batch })
        }))
    }
}

fn no_space(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(
        error.kind(),
        format!(
            "cannot store the file's record batches in {}: {error}; free space there, set TMPDIR, or add --no-precheck",
            folder.display()
        ),
    )
}

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

impl EncodedBatch {
    /// Adds the envelope. `digest` is that of the batch's input, and `number` the number of the batch within its run.
    pub(crate) fn into_message(
        self,
        (source, run): (&str, &str),
        digest: &str,
        file: &str,
        number: u64,
    ) -> (Envelope, Bytes) {
        let Self { kind, codec, chunk, rows, line, body } = self;
        let envelope = Envelope {
            id: BatchId::from_provenance(source, digest, chunk, &schema_name(kind)),
            kind,
            version: BODY_VERSION,
            codec,
            source: source.to_owned(),
            run: run.to_owned(),
            chunk: number,
            rows,
            file: file.to_owned(),
            line,
        };
        (envelope, body)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_back_in_order_from_memory_and_disk() {
        let mut spool = BatchSpool::default();
        let batch = |chunk: u64| EncodedBatch {
            kind: Kind::Dividend,
            codec: Codec::JsonZstd,
            chunk,
            rows: 3,
            line: chunk * 2,
            body: vec![chunk as u8; IN_MEMORY / 3].into(),
        };
        (0..5).for_each(|chunk| spool.push(batch(chunk)).unwrap());
        assert!(spool.file.is_rolled());
        for (expected, found) in (0..).zip(spool.into_record_batches().unwrap()) {
            let found = found.unwrap();
            assert_eq!(
                (found.chunk, found.line, found.kind, found.codec),
                (expected, expected * 2, Kind::Dividend, Codec::JsonZstd)
            );
            assert_eq!(found.body, batch(expected).body);
        }
    }
}
