//! Module index: builds in `rebuild.rs` and `rebuild_args.rs`, the served generation in `promote.rs`, copied tables in
//! `copied_tables.rs`, free space in `disk_space.rs`.

pub(crate) mod copied_tables;
pub(crate) mod disk_space;
pub mod promote;
pub mod rebuild;
pub mod rebuild_args;
