//! Stocks and ETFs: lists and everything about one of them.

pub(crate) mod dividends;
pub(crate) mod fundamentals;
pub(crate) mod list;
pub(crate) mod metrics;
mod past;
pub(crate) mod quote;
pub(crate) mod snapshot;
pub(crate) mod splits;
