//! Codecs of batch bodies: packed columns for prices, JSON for all other kinds. Large JSON is compressed with zstd.
//!
//! Size limits of record batches, and errors of encoding rows and decoding messages.

use bytes::Bytes;
use codec::bars::PackedBarsError;
use codec::records::PackedRecordsError;
use market::event::Kind;
use serde::Serialize;
use serde::de::DeserializeOwned;

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
