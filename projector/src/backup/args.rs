//! Arguments of `projector backup` and `projector restore`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `projector backup`.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// Folder to create
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `projector restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// Folder that `projector backup` created
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
