//! Record batch: rows of one kind with their provenance. Loading a feed again gives the same batches with the same ids.
//! A stored batch is never edited.

use async_nats::HeaderMap;
use bytes::Bytes;

pub use crate::body::Body;
pub use crate::codec::{Codec, unpacked_length};
pub use crate::columns::SymbolSeries;
pub use crate::envelope::BatchId;
pub use crate::envelope::{BODY_VERSION, Envelope, schema_name};
pub use crate::error::{BatchError, RecordError};
pub use crate::limits::{MAX_BYTES, TARGET_BYTES};
pub use crate::run_batches::batch_ids_of_run;

/// Rows of one kind with their provenance. A log message usually has one batch. A shared message has several.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordBatch {
    /// Id of the batch. If the same feed is loaded again, the id stays the same.
    pub id: BatchId,
    /// Name of the feed of the rows: the value of the `ingest` option `--source`.
    pub source: String,
    /// Id of the run that published the batch.
    pub run: String,
    /// Number of the batch within its run, from 0.
    pub chunk: u64,
    /// Name of the file from which the rows were read, for display.
    pub file: String,
    /// Line number in `file` of the first row of the batch.
    pub line: u64,
    /// Rows of the batch.
    pub body: Body,
}

impl RecordBatch {
    /// Encodes the batch as headers and body of a message that contains only this batch.
    pub fn encode(&self) -> Result<(HeaderMap, Bytes), BatchError> {
        let (codec, body) = self.body.encode()?;
        Ok((self.envelope(codec).to_headers(), body))
    }

    pub(crate) fn envelope(&self, codec: Codec) -> Envelope {
        Envelope {
            id: self.id,
            kind: self.body.kind(),
            version: BODY_VERSION,
            codec,
            source: self.source.clone(),
            run: self.run.clone(),
            chunk: self.chunk,
            rows: self.body.row_count() as u64,
            file: self.file.clone(),
            line: self.line,
        }
    }

    /// Decodes a batch from its envelope and its encoded rows.
    pub(crate) fn from_parts(envelope: Envelope, payload: &[u8]) -> Result<Self, BatchError> {
        let mut body = Body::decode(envelope.kind, envelope.codec, payload)?;
        if let Body::Prices(series) = &mut body {
            for version in series.iter_mut().flat_map(|s| &mut s.bars.versions) {
                (version.frame, version.line) = (envelope.id.0, envelope.line);
            }
        }
        let Envelope { id, source, run, chunk, file, line, .. } = envelope;
        Ok(Self { id, source, run, chunk, file, line, body })
    }
}

#[cfg(test)]
mod tests {
    use market::event::Kind;

    use super::*;

    fn headers(schema: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", "0".repeat(32).as_str());
        for (name, value) in
            [("Schema", schema), ("Source", "a"), ("Run", "r"), ("Codec", "json"), ("File", "f")]
        {
            headers.insert(format!("Dds-{name}").as_str(), value);
        }
        for name in ["Chunk", "Rows", "Line"] {
            headers.insert(format!("Dds-{name}").as_str(), "1");
        }
        headers
    }

    #[test]
    fn a_newer_version_stops_the_reader() {
        let error = RecordBatch::decode(Some(&headers("dividend.v2")), b"[]").unwrap_err();
        assert!(
            matches!(error, BatchError::NewerVersion { kind: Kind::Dividend, found: 2, newest: 1 }),
            "{error}"
        );
        assert!(error.stops_reader());
        assert!(error.to_string().contains("upgrade this program"), "{error}");
        assert_eq!(RecordBatch::decode(Some(&headers("dividend.v1")), b"[]").unwrap().len(), 1);
    }
}
