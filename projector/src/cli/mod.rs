//! Module index: arguments in `command.rs`, execution and exit codes in `run.rs`, `projector status` in
//! `status.rs`.

pub(crate) mod command;
pub mod run;
pub mod status;
