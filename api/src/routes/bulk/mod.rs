//! Bulk endpoints: many symbols in one call (Professional).

mod answer;
pub(crate) mod dividends;
pub(crate) mod rows;
