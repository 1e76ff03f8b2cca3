//! ETFs: lists, details, holdings.

pub(crate) mod detail;
pub(crate) mod holdings;
pub(crate) mod list;
