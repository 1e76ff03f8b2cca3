//! `projector backup` and `projector restore` of all data that cannot be derived again, at one position of the log.
//!
//! A backup contains the log, accounts with key hashes, plans and audit, the source policy, and decisions on
//! dead letters. It contains only the checksums of the read tables. A restore derives the tables again and
//! compares the checksums.
//!
//! The tables are copied by the projector and not by `pg_dump`:
//!
//! - The projector also runs on machines without Postgres's client programs, and `pg_dump` refuses a server that is
//!   newer than itself.
//! - Tables, checkpoint and checksums are read in one database snapshot. For `pg_dump`, the snapshot would have to be
//!   exported.
//! - The program and database schema of the restore may be newer than those of the backup. The restore therefore names
//!   the columns, and replaces rows that a migration inserted, such as plans.
//! - The manifest contains a digest of every file. A damaged backup is refused before anything is written.

mod create;
mod error;
mod folder;
mod manifest;
mod restore;
mod tables;

pub use create::{BackupReport, create_backup};
pub use error::BackupError;
pub use restore::{RestoreReport, restore_backup};
