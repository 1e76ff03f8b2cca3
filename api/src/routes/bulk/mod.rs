//! Many symbols in one call (Professional).

mod answer;
pub(crate) mod dividends;
pub(crate) mod rows;
