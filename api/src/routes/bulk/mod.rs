//! Bulk endpoints: many symbols in one call (Professional).

pub(crate) mod dividends;
pub(crate) mod quotes_and_metrics;
mod stream;
