//! Screeners: every active security, filtered by figures, with presets (R15, R18).

pub(crate) mod filters;
mod figures;
pub(crate) mod handlers;
pub(crate) mod row;
