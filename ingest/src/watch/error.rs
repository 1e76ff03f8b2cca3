//! Errors that prevent watching a folder.

use std::io;
use std::path::PathBuf;

/// Errors that prevent watching a folder.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("cannot watch {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot watch {}: another process watches it", folder.display())]
    Locked { folder: PathBuf },
    #[error("cannot watch {}: the folder was moved or deleted", folder.display())]
    Gone { folder: PathBuf },
    #[error("cannot parse the options of ingest load: {0}")]
    Options(#[from] clap::Error),
}
