//! Errors that end a load or another run.

use event_log::frame::FrameError;

use crate::log::publisher::PublishFailure;
use crate::log::reader::LogError;
use crate::source::standard_input::StandardInputError;

/// Errors that end a load.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}; run the same command again to resume")]
    Publish(#[from] PublishFailure),
    #[error("interrupted; what was acknowledged is kept, run the same command again to resume")]
    Interrupted,
    #[error(
        "run {run} loaded some of these files before and run {undo} took it back: what is in the log is not published again; `ingest undo {undo}` brings it back"
    )]
    TakenBack { run: String, undo: String },
    /// Any other error; the text is the whole message.
    #[error("{0}")]
    Failed(String),
    #[error("a task of the load ended unexpectedly: {0}")]
    Task(#[source] tokio::task::JoinError),
    #[error("a frame cannot be encoded: {0}")]
    Encode(#[from] FrameError),
}

impl LoadError {
    /// Exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) | Self::Publish(_) => 3,
            Self::Interrupted => 130,
            Self::TakenBack { .. } | Self::Failed(_) | Self::Task(_) | Self::Encode(_) => 2,
        }
    }
}

impl From<StandardInputError> for LoadError {
    fn from(error: StandardInputError) -> Self {
        match error {
            StandardInputError::Interrupted => Self::Interrupted,
            lost => Self::Failed(lost.to_string()),
        }
    }
}
