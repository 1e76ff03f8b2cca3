//! Errors that end a pull.

use std::io;
use std::path::PathBuf;

use crate::load::error::LoadError;
use crate::log::reader::LogError;

/// Errors that end a pull.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error("cannot use the manifest {name}: {reason}")]
    Manifest { name: String, reason: String },
    /// A credential is missing, or a symbol, a request or an option is invalid.
    #[error("{connector}: {reason}")]
    Unusable { connector: String, reason: String },
    #[error("cannot lock {}: another pull uses it", folder.display())]
    Locked { folder: PathBuf },
    #[error("cannot use {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("interrupted; fetched answers are kept, run the same command again to resume")]
    Interrupted,
}

impl PullError {
    /// Exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) => 3,
            Self::Load(error) => error.exit_code(),
            Self::Interrupted => 130,
            Self::Manifest { .. } | Self::Unusable { .. } | Self::Locked { .. } | Self::Folder { .. } => 2,
        }
    }
}
