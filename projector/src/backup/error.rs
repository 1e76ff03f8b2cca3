//! Why nothing was kept or brought back.

use std::path::PathBuf;

use event_log::archive::ArchiveError;
use event_log::stream::StreamError;
use store::db::DbError;

use crate::error::{ConsumeError, RunError};

/// Why a backup was not made, or not brought back.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{} is no whole backup: {reason}", path.display())]
    Incomplete { path: PathBuf, reason: String },
    #[error("{0}")]
    Refused(String),
    #[error(
        "the served tables were not level with the log within {0} s: a backup is of one position. Make it when projector status tells no lag"
    )]
    NotCaughtUp(u64),
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<tokio_postgres::Error> for BackupError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

impl BackupError {
    /// Whether a server could not be reached.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Db(error) | Self::Run(RunError::Db(error)) => error.is_unreachable(),
            Self::Stream(_) | Self::Run(RunError::Stream(_)) => true,
            _ => false,
        }
    }
}
