//! Why the log could not be read.

use event_log::frame::FrameError;
use event_log::stream::StreamError;

/// Why the log could not be read.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the log cannot be read: {0}")]
    Read(String),
    #[error("message {sequence} of the log cannot be read: {error}")]
    Frame { sequence: u64, error: FrameError },
    #[error("the log has no message {0}")]
    NoMessage(u64),
}

impl LogError {
    /// Whether the server answers and has no log.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Stream(StreamError::Absent { .. }))
    }
}
