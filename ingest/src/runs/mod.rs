//! Commands for past runs: verify, undo, freshness, inspect, export and import.

pub mod archive;
pub mod freshness;
pub mod inspect;
pub mod undo;
pub mod verify;
