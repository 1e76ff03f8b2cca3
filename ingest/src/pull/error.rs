//! Errors that end a pull.

use std::io;
use std::path::PathBuf;

use crate::load::publication::LoadError;
use crate::log::reader::LogError;

/// Errors that end a pull.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error(
        "cannot use the manifest {name}: {source}; shipped manifests: {shipped}; any other name is a file"
    )]
    ManifestFile { name: String, shipped: String, source: io::Error },
    #[error("cannot use the manifest {name}: {source}")]
    Manifest { name: String, source: ManifestError },
    #[error("{connector}: options of the manifest: {source}")]
    Options { connector: String, source: clap::Error },
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

/// Errors in the TOML text of a connector manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not TOML, or a field is missing, unknown or has the wrong type.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// The fields are complete, but a value is not allowed. The message names the field and the rule.
    #[error("{0}")]
    Invalid(String),
}

impl PullError {
    /// Exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) => 3,
            Self::Load(error) => error.exit_code(),
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}
