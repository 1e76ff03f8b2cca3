//! `projector backup` and `projector restore`: what cannot be made again, at one position of the log, and how everything
//! else is made from it and compared.
//!
//! Kept are the log, the accounts with their keys' hashes, plans and audit, the source policy and what was decided on dead
//! letters. Read tables are kept as checksums only: a restore derives them anew and names those that differ.

mod args;
mod checksums;
mod create;
mod error;
mod folder;
mod manifest;
mod restore;
mod tables;

pub use args::{BackupArgs, RestoreArgs};
pub use create::{BackupReport, create_backup};
pub use error::BackupError;
pub use restore::{RestoreReport, restore_backup};
