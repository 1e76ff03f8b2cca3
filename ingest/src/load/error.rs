//! Errors that end a load, or another command that publishes a run.

use event_log::archive::ArchiveError;
use event_log::record_batch::BatchError;

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
    #[error("interrupted; published rows are kept, run the same command again to resume")]
    Interrupted,
    /// Any other error. The text is the complete message.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    StandardInput(StandardInputError),
    #[error("cannot read the command in its manifest: {0}")]
    Command(#[from] clap::Error),
    #[error("a task of the load ended unexpectedly: {0}")]
    Task(#[source] tokio::task::JoinError),
    #[error("cannot write the rows of the dry run for the projector: {0}")]
    Candidate(#[from] ArchiveError),
    #[error("cannot encode a record batch: {0}")]
    Encode(#[from] BatchError),
}

impl LoadError {
    /// Exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) | Self::Publish(_) => 3,
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}

impl From<StandardInputError> for LoadError {
    fn from(error: StandardInputError) -> Self {
        match error {
            StandardInputError::Interrupted => Self::Interrupted,
            lost => Self::StandardInput(lost),
        }
    }
}
