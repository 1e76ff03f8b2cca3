//! Accumulation of rows into record batches, with statistics, coverage and retraction checks.

pub(crate) mod batch_spool;
pub(crate) mod coverage;
pub(crate) mod holdings;
pub(crate) mod load_stats;
pub(crate) mod price_evidence;
pub(crate) mod retractions;
pub(crate) mod reviewed_rows;
pub(crate) mod row_accumulator;
pub(crate) mod row_review;
pub(crate) mod security_currencies;
mod symbol_table;
