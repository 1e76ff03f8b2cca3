//! `projector backup` and `projector restore`: all data that cannot be derived again, at one position of the log.
//!
//! A backup contains the log, accounts, source policy, list of served data versions and discarded dead letters. It has
//! only checksums of the read tables. A restore derives the read tables again and compares the checksums.
//!
//! The projector does not use `pg_dump`, for these reasons:
//!
//! - `pg_dump` is missing on some machines, and refuses a server that is newer than itself.
//! - Tables, checkpoint and checksums must come from one database snapshot.
//! - A restore may use a newer schema. Its migrations insert rows, such as plans, which would conflict with a dump.
//!
//! Errors of backup and restore.

mod create;
mod manifest;
mod restore;
mod tables;

use std::path::PathBuf;

pub use create::{BackupReport, create_backup};
use event_log::archive::ArchiveError;
use event_log::stream::StreamError;
pub use restore::{RestoreReport, restore_backup};
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
