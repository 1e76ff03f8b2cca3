//! Derivation: touched securities are read, derived on all cores and handed to the writer.

pub(crate) mod input;
pub(crate) mod pipeline;
pub mod sectors;
pub mod touched;
