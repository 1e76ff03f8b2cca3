//! Codec of batch bodies: columns for prices, JSON for other kinds, zstd above a size.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::FrameError;
use crate::limits::MAX_BYTES;

/// The header that names the codec.
pub(crate) const CODEC: &str = "Dds-Codec";

/// JSON from this many bytes on is compressed.
const COMPRESSED_FROM: usize = 4096;

/// How the body bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// JSON, for all other kinds.
    Json,
    /// JSON compressed with zstd, for large ones.
    JsonZstd,
    /// Several frames' bodies behind each other, each written as it says itself ([`crate::shared`]).
    Shared,
    /// Columns of blocks (`market::bars`), for prices.
    Blocks,
}

impl Codec {
    /// Every codec, in their order.
    pub const ALL: [Self; 4] = [Self::Json, Self::JsonZstd, Self::Shared, Self::Blocks];

    /// Its word in a header.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonZstd => "json+zstd",
            Self::Shared => "shared",
            Self::Blocks => "blocks",
        }
    }

    /// The codec of a header's word.
    pub(crate) fn parse(word: &str) -> Result<Self, FrameError> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.as_str() == word)
            .ok_or_else(|| FrameError::UnknownCodec(word.to_owned()))
    }
}

/// Rows as JSON.
pub(crate) fn encode_json(rows: &impl Serialize) -> Result<(Codec, Bytes), FrameError> {
    let json = serde_json::to_vec(rows)?;
    if json.len() < COMPRESSED_FROM {
        return Ok((Codec::Json, json.into()));
    }
    Ok((Codec::JsonZstd, zstd::bulk::compress(&json, 3).map_err(FrameError::Compression)?.into()))
}

/// Rows from JSON.
pub(crate) fn decode_json<T: DeserializeOwned>(codec: Codec, bytes: &[u8]) -> Result<T, FrameError> {
    match codec {
        Codec::Json => Ok(serde_json::from_slice(bytes)?),
        Codec::JsonZstd => Ok(serde_json::from_slice(&decompress(bytes)?)?),
        Codec::Blocks | Codec::Shared => Err(FrameError::Header(CODEC)),
    }
}

/// Bytes of a message's body once it is unpacked, as its packer noted them; the body is not unpacked for that.
pub fn unpacked_length(payload: &[u8]) -> usize {
    let noted = zstd::zstd_safe::get_frame_content_size(payload).ok().flatten();
    let noted = noted.and_then(|length| usize::try_from(length).ok());
    noted.map_or(payload.len(), |noted| noted.clamp(payload.len(), MAX_BYTES.max(payload.len())))
}

/// Inflates at most [`MAX_BYTES`], whatever size the bytes claim, and fails beyond.
fn decompress(bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
    use std::io::Read;
    let mut json = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(FrameError::Compression)?;
    decoder.take(MAX_BYTES as u64 + 1).read_to_end(&mut json).map_err(FrameError::Compression)?;
    if json.len() > MAX_BYTES {
        return Err(FrameError::Compression(std::io::Error::other("it inflates beyond the limit")));
    }
    Ok(json)
}
