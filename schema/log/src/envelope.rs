//! Envelope of a record batch: its identity and provenance. The envelope is stored in message headers, so that it can
//! be read without decoding the rows.
//!
//! Id of a record batch. It is a hash of the provenance of the rows, so loading the same feed again gives the same ids.

use std::fmt;

use async_nats::{HeaderMap, HeaderValue};
use market::event::{Kind, RunManifest};

use crate::codec::{BatchError, CODEC, Codec};

const SCHEMA: &str = "Dds-Schema";
const SOURCE: &str = "Dds-Source";
const RUN: &str = "Dds-Run";
const CHUNK: &str = "Dds-Chunk";
const ROWS: &str = "Dds-Rows";
const FILE: &str = "Dds-File";
const LINE: &str = "Dds-Line";

/// Newest version of the body format that this program can read. The schema name of a batch ends with the version of
/// its body format, for example `price.v1`.
pub const BODY_VERSION: u32 = 1;

/// Schema name of a kind with the newest version of the body format, for example `price.v1`.
pub fn schema_name(kind: Kind) -> String {
    schema_of(kind, BODY_VERSION)
}

fn schema_of(kind: Kind, version: u32) -> String {
    format!("{kind}.v{version}")
}

/// Envelope of a record batch: identity, format and provenance of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Id of the batch.
    pub id: BatchId,
    /// Kind of the batch's rows.
    pub kind: Kind,
    /// Version of the format of the rows.
    pub version: u32,
    /// Codec of the encoded rows.
    pub codec: Codec,
    /// Name of the feed that the rows are from.
    pub source: String,
    /// Id of the run that published the batch.
    pub run: String,
    /// Number of the batch within its run, from 0.
    pub chunk: u64,
    /// Number of rows in the batch.
    pub rows: u64,
    /// Name of the file from which the rows were read, for display.
    pub file: String,
    /// Line number in `file` of the first row of the batch.
    pub line: u64,
}

impl Envelope {
    /// Encodes the envelope as message headers.
    pub fn to_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_ID, self.id.to_string().as_str());
        headers.insert(SCHEMA, schema_of(self.kind, self.version).as_str());
        headers.insert(CODEC, self.codec.as_str());
        headers.insert(SOURCE, printable(&self.source).as_str());
        headers.insert(RUN, printable(&self.run).as_str());
        headers.insert(CHUNK, self.chunk.to_string().as_str());
        headers.insert(ROWS, self.rows.to_string().as_str());
        headers.insert(FILE, printable(&self.file).as_str());
        headers.insert(LINE, self.line.to_string().as_str());
        headers
    }

    /// Parses an envelope from message headers.
    pub fn from_headers(headers: Option<&HeaderMap>) -> Result<Self, BatchError> {
        let text = |name: &'static str| {
            let value = headers.and_then(|headers| headers.get(name));
            value.map(HeaderValue::as_str).ok_or(BatchError::Header(name))
        };
        // A number above the range of a Postgres bigint is an error.
        let number = |name: &'static str| {
            let number = text(name)?.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
            number.ok_or(BatchError::Header(name))
        };
        let (kind, version) = text(SCHEMA)?.rsplit_once(".v").ok_or(BatchError::Header(SCHEMA))?;
        let found = version.parse::<u32>().map_err(|_| BatchError::Header(SCHEMA))?;
        let kind: Kind = kind.parse().map_err(|_| BatchError::Header(SCHEMA))?;
        check_version(kind, found)?;
        Ok(Self {
            codec: Codec::parse(text(CODEC)?)?,
            id: text(MESSAGE_ID)?.parse()?,
            kind,
            version: found,
            source: text(SOURCE)?.to_owned(),
            run: text(RUN)?.to_owned(),
            chunk: number(CHUNK)?,
            rows: number(ROWS)?,
            file: text(FILE)?.to_owned(),
            line: number(LINE)?,
        })
    }
}

/// Fails for a body format that is newer than [`BODY_VERSION`].
pub(crate) fn check_version(kind: Kind, found: u32) -> Result<(), BatchError> {
    match found {
        ..=BODY_VERSION => Ok(()),
        _ => Err(BatchError::NewerVersion { kind, found, newest: BODY_VERSION }),
    }
}

/// Replaces control characters by spaces, because they would damage the header block.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Name of the header with the message id. JetStream drops a message if another message with the same id was stored
/// within the deduplication window.
pub(crate) const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Id of a record batch: a hash of the source, the digest of the input, the batch number and the schema name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BatchId(pub [u8; 16]);

impl BatchId {
    /// Computes the id of a batch. `input_digest` is the digest of the whole input. `chunk` is the number of the batch
    /// among the batches of one kind from this input. `schema` is the schema name of the rows.
    pub fn from_provenance(source: &str, input_digest: &str, chunk: u64, schema: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [source.as_bytes(), input_digest.as_bytes(), &chunk.to_be_bytes(), schema.as_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(id)
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for BatchId {
    type Err = BatchError;
    fn from_str(text: &str) -> Result<Self, BatchError> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        number.map(|number| Self(number.to_be_bytes())).ok_or(BatchError::Header(MESSAGE_ID))
    }
}

/// Ids of all record batches of a completed run, computed from its manifest.
pub fn batch_ids_of_run(run: &RunManifest) -> impl Iterator<Item = BatchId> {
    run.frames.iter().flat_map(move |cut| {
        let schema = schema_name(cut.kind);
        (0..cut.frames).map(move |chunk| BatchId::from_provenance(&run.source, &cut.input, chunk, &schema))
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use market::event::{InputBatchCount, Kind, RunState};

    use super::*;

    #[test]
    fn a_manifest_promises_the_ids_of_its_batches() {
        let begun =
            RunManifest::started("r".to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        let cut = |kind, batches| InputBatchCount { input: "a".to_owned(), kind, frames: batches };
        let run = RunManifest {
            state: RunState::Completed,
            frames: vec![cut(Kind::Price, 2), cut(Kind::Dividend, 1)],
            ..begun
        };
        let ids: Vec<BatchId> = batch_ids_of_run(&run).collect();
        let of = |chunk, schema: &str| BatchId::from_provenance("eod", "a", chunk, schema);
        assert_eq!(ids, [of(0, "price.v1"), of(1, "price.v1"), of(0, "dividend.v1")]);
    }
}
