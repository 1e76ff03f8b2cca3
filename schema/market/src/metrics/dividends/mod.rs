//! Dividend rules (R1–R9, R13–R19): pure functions of dividend amounts, dates and company figures.

pub(crate) mod completeness;
pub mod ex_date;
pub mod frequency;
pub mod grower_lists;
pub mod growth;
pub mod projection;
pub mod rate_changes;
pub mod safety;
pub mod schedule;
pub mod status;
pub mod streak;
pub mod yields;
