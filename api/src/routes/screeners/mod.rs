//! Screeners: every active security, filtered by figures, with presets (R15, R18).

mod figures;
pub(crate) mod filters;
pub(crate) mod handlers;
pub(crate) mod row;
