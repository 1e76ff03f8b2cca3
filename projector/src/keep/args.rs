//! The arguments of both commands.

use std::path::PathBuf;

use clap::Args;

/// Write everything that cannot be made again into a folder, at one position of the log (needs DATABASE_URL)
///
/// It holds the log, accounts with their keys' hashes, plans and audit, the source policy and decisions on dead letters, and
/// checksums of the read tables. The service goes on meanwhile. Whoever can read the folder can read customers' addresses.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// Folder to make
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Bring a backup back onto empty servers, make the read tables anew and compare them (needs DATABASE_URL)
///
/// Exits with 0 when every table is as it was, with 4 when some differ; they are named. Roles' passwords belong to the
/// Postgres server: set them again.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// Folder that `projector backup` made
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
