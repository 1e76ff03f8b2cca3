//! Envelope of a record batch: its identity and provenance. The envelope is stored in message headers, so that it can
//! be read without decoding the rows.
//!
//! Id of a record batch. It is a hash of the provenance of the rows, so loading the same feed again gives the same ids.
//!
//! Codecs of batch bodies: packed columns for prices, JSON for all other kinds. Large JSON is compressed with zstd. Size
//! limits of record batches, and errors of encoding rows and decoding messages.

use std::fmt;

use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use codec::bars::PackedBarsError;
use codec::records::PackedRecordsError;
use market::event::{Kind, RunManifest};
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// Name of the header that states the codec of a body.
pub(crate) const CODEC: &str = "Dds-Codec";

/// Minimum size of JSON that is compressed, in bytes.
const COMPRESSED_FROM: usize = 4096;

/// Encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// JSON, for all kinds except prices.
    Json,
    /// JSON compressed with zstd, for large bodies.
    JsonZstd,
    /// Bodies of several batches, one after the other. Each body has its own codec ([`crate::record_batch`]).
    Shared,
    /// Blocks of packed columns (`codec::bars`), for prices.
    Blocks,
}

impl Codec {
    /// All codecs, in the order of the variants.
    pub const ALL: [Self; 4] = [Self::Json, Self::JsonZstd, Self::Shared, Self::Blocks];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonZstd => "json+zstd",
            Self::Shared => "shared",
            Self::Blocks => "blocks",
        }
    }

    pub(crate) fn parse(word: &str) -> Result<Self, BatchError> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.as_str() == word)
            .ok_or_else(|| BatchError::UnknownCodec(word.to_owned()))
    }
}

/// Encodes rows as JSON. JSON of 4,096 bytes or more is compressed.
pub(crate) fn encode_json(rows: &impl Serialize) -> Result<(Codec, Bytes), BatchError> {
    let json = serde_json::to_vec(rows)?;
    if json.len() < COMPRESSED_FROM {
        return Ok((Codec::Json, json.into()));
    }
    Ok((Codec::JsonZstd, zstd::bulk::compress(&json, 3).map_err(BatchError::Compression)?.into()))
}

/// Decodes rows from JSON.
pub(crate) fn decode_json<T: DeserializeOwned>(codec: Codec, bytes: &[u8]) -> Result<T, BatchError> {
    match codec {
        Codec::Json => Ok(serde_json::from_slice(bytes)?),
        Codec::JsonZstd => Ok(serde_json::from_slice(&decompress(bytes)?)?),
        Codec::Blocks | Codec::Shared => Err(BatchError::Header(CODEC)),
    }
}

/// Size of a body after decompression, in bytes. A size that a zstd frame header states counts only up to `MAX_BYTES`.
pub fn unpacked_length(payload: &[u8]) -> usize {
    let noted = zstd::zstd_safe::get_frame_content_size(payload).ok().flatten();
    let noted = noted.and_then(|length| usize::try_from(length).ok());
    noted.map_or(payload.len(), |noted| noted.clamp(payload.len(), MAX_BYTES.max(payload.len())))
}

/// Decompresses a body. Fails if the result is larger than [`MAX_BYTES`], even if the frame header states a smaller
/// size.
fn decompress(bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
    use std::io::Read;
    let mut json = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(BatchError::Compression)?;
    decoder.take(MAX_BYTES as u64 + 1).read_to_end(&mut json).map_err(BatchError::Compression)?;
    if json.len() > MAX_BYTES {
        return Err(BatchError::Compression(std::io::Error::other("it inflates beyond the limit")));
    }
    Ok(json)
}

/// Target size of a body, in bytes. If a row would make the body larger, the row goes into the next record batch.
pub const TARGET_BYTES: usize = 256 * 1024;
/// Maximum size of a body after decompression, in bytes. The limit protects readers from decompression bombs.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Errors of decoding a message.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    #[error("header {0} is missing or malformed")]
    Header(&'static str),
    #[error("header block is not that of a message: its first line is \"{0}\"")]
    HeaderBlock(String),
    #[error(
        "cannot read body version {found} of {kind}: a newer version wrote it, this one reads up to {newest}; upgrade this program"
    )]
    NewerVersion { kind: Kind, found: u32, newest: u32 },
    #[error("cannot read codec {0:?}: a newer version wrote it; upgrade this program")]
    UnknownCodec(String),
    #[error("body is not valid JSON of its kind: {0}")]
    Json(#[from] serde_json::Error),
    #[error("body is not valid columns: {0}")]
    Columns(#[from] PackedBarsError),
    #[error("body is not valid columns: {0}")]
    Postcard(#[from] postcard::Error),
    #[error("body cannot be decompressed within {MAX_BYTES} bytes: {0}")]
    Compression(std::io::Error),
}

/// Error for a row that cannot be stored in the facts.
#[derive(Debug, thiserror::Error)]
#[error("a row of {symbol} cannot be stored")]
pub struct RecordError {
    /// Symbol of the row; empty for a record that concerns the whole market (a market session).
    pub symbol: String,
    /// Cause of the error.
    pub source: PackedRecordsError,
}

impl BatchError {
    /// True if a newer program version wrote the message; the reader must then stop. False if the message is damaged;
    /// the reader can then continue with the next message.
    pub fn stops_reader(&self) -> bool {
        matches!(self, Self::NewerVersion { .. } | Self::UnknownCodec(_))
    }
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
