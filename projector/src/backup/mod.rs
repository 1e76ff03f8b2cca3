//! `projector backup` and `projector restore`: everything that cannot be derived again, at one position of the
//! log.
//!
//! A backup contains the log, accounts with key hashes, plans and audit, the source policy, and decisions on
//! dead letters. Of the read tables it contains checksums only. A restore derives the tables again and compares
//! the checksums.

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
