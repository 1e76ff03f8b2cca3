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

mod create;
mod manifest;
mod restore;
mod tables;

pub use create::{BackupReport, create_backup};
pub use restore::{RestoreReport, restore_backup};
