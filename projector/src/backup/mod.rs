//! `projector backup` and `projector restore`. They save and restore all data that cannot be derived again. All saved
//! data belongs to one position of the log.
//!
//! A backup contains the log, the accounts (with key hashes, plans and audit log), the source policy, the list of
//! served data versions, and the discarded dead letters. It does not contain the read tables, only their checksums. A
//! restore derives the tables again and compares the checksums.
//!
//! The projector copies the tables itself and does not use `pg_dump`, for these reasons:
//!
//! - The projector also runs on machines without Postgres's client programs, and `pg_dump` refuses a server that is
//!   newer than itself.
//! - Tables, checkpoint and checksums come from one database snapshot. To use `pg_dump`, the projector would have to
//!   export this snapshot.
//! - The database schema may be newer at the restore than at the backup. The restore therefore names the columns in
//!   `copy`. It also replaces the rows that a migration has inserted, such as plans. The rows of a dump would conflict
//!   with these rows.
//! - The manifest contains a digest of every file. If a file is damaged, the restore fails before it writes anything.

mod create;
mod error;
mod folder;
mod manifest;
mod restore;
mod tables;

pub use create::{BackupReport, create_backup};
pub use error::BackupError;
pub use restore::{RestoreReport, restore_backup};
