//! Errors of encoding rows and decoding messages.

use codec::bars::PackedBarsError;
use codec::records::PackedRecordsError;
use market::event::Kind;

use crate::limits::MAX_BYTES;

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
