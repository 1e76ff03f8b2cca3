//! Derivation of read tables from facts.

pub(crate) mod input;
pub(crate) mod pipeline;
pub mod sectors;
pub mod touched;
