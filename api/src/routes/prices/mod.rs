//! Prices: daily bars, adjusted as asked, aggregated as asked.
//!
//! Prices are stored raw, as packed columns of scaled integers; adjusting and writing them works on whole columns
//! without a struct a row, because ten years of them are the largest answer of the service.

pub(crate) mod history;
pub(crate) mod latest;
pub(crate) mod market;
mod series;
mod write;
