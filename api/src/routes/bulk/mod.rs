//! Bulk endpoints: many symbols in one call (Professional).

mod stream;
pub(crate) mod dividends;
pub(crate) mod quotes_and_metrics;
