//! The arguments of both commands.

use std::path::PathBuf;

use clap::Args;

/// Arguments of a backup.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// Folder to make
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of a restore.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// Folder that `projector backup` made
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
