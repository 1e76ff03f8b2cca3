//! Rows accumulated into record batches, with statistics, coverage and retraction checks.

pub(crate) mod accumulator;
pub(crate) mod coverage;
pub(crate) mod encode;
pub(crate) mod holdings;
pub(crate) mod retractions;
pub(crate) mod spool;
pub(crate) mod stats;
