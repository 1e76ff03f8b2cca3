//! Errors of backup and restore.

use std::path::PathBuf;

use event_log::archive::ArchiveError;
use event_log::stream::StreamError;
use store::db::DbError;

use crate::error::{ConsumeError, RunError, from_statement};

/// Reason for the failure of a backup or restore.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot restore {}: the backup is incomplete: {reason}", path.display())]
    Incomplete { path: PathBuf, reason: String },
    #[error("cannot restore {}: the backup is incomplete: backup.json: {source}", path.display())]
    ManifestFile { path: PathBuf, source: std::io::Error },
    #[error("cannot restore {}: cannot decode backup.json: {source}", path.display())]
    Manifest { path: PathBuf, source: serde_json::Error },
    #[error("{0}")]
    Refused(String),
    #[error(
        "cannot create a backup: the served tables lag behind the facts for {0} s; wait until projector status prints no lag"
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

from_statement!(BackupError);

impl BackupError {
    /// `true` if a server could not be reached.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Db(error) | Self::Run(RunError::Db(error)) => error.is_unreachable(),
            Self::Stream(_) | Self::Run(RunError::Stream(_)) => true,
            _ => false,
        }
    }
}
