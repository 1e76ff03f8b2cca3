//! Errors of reading the log.

use event_log::archive::ArchiveError;
use event_log::message::FetchError;
use event_log::record_batch::BatchError;
use event_log::stream::StreamError;
use market::event::RunIdError;

/// Errors of reading the log.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("cannot read the log: {0}")]
    Read(#[source] async_nats::Error),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("cannot read message {sequence} of the log: {source}")]
    Batch { sequence: u64, source: BatchError },
    #[error("cannot write the log to the file: {0}")]
    Archive(#[source] ArchiveError),
    #[error("a task that reads the log ended unexpectedly: {0}")]
    Task(#[source] tokio::task::JoinError),
    #[error("the log has no message {0}")]
    NoMessage(u64),
    #[error(transparent)]
    Run(#[from] RunIdError),
}

impl LogError {
    /// Exit code for this error: 2 for a message or run that does not exist, 3 for a log that cannot be used.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::NoMessage(_) | Self::Run(_)) { 2 } else { 3 }
    }

    /// True if the operation may succeed with a new connection.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Read(_) | Self::Fetch(FetchError::Request { .. } | FetchError::Server { .. }) => true,
            Self::Stream(error) => {
                matches!(error, StreamError::Unreachable { .. } | StreamError::Unanswered { .. })
            }
            _ => false,
        }
    }

    /// True if the server is reachable, but the log does not exist.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Stream(StreamError::Absent { .. }))
    }
}
