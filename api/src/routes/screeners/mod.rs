//! Screeners: active securities filtered by figures such as yield and growth, with presets (R15, R18).

pub(crate) mod figures;
pub(crate) mod filters;
pub(crate) mod handlers;
