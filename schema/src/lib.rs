//! What ingest, projector and API agree on: events, frames, the log's names, the tables' rows, and what each number means.
//!
//! Invariants: this crate knows neither axum nor feeds; `measure` is pure (no clock, no I/O); every decimal is exact.

pub mod bars;
pub mod copy;
pub mod db;
pub mod event;
pub mod facts;
pub mod failpoint;
pub mod frame;
mod frame_json;
pub mod history;
pub mod identity;
pub mod measure;
pub mod process;
pub mod row;
pub mod stream;
pub mod symbol;
mod text_enum;
pub mod value;
