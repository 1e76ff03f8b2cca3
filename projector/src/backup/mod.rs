//! `projector backup` and `projector restore`. They save and restore all data that cannot be derived again, at one
//! position of the log.
//!
//! A backup contains the log, the accounts (with key hashes, plans and audit log), the source policy, the list of
//! served data versions, and the discarded dead letters. It does not contain the read tables, only their checksums. A
//! restore derives the tables again and compares the checksums.
//!
//! The tables are copied by the projector and not by `pg_dump`:
//!
//! - The projector also runs on machines without Postgres's client programs, and `pg_dump` refuses a server that is
//!   newer than itself.
//! - Tables, checkpoint and checksums come from one database snapshot. To use `pg_dump`, the projector would have to
//!   export this snapshot.
//! - A restore may use a newer program and a newer database schema than the backup. It therefore names the columns in
//!   `copy`, and replaces rows that a migration inserted, such as plans.
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
