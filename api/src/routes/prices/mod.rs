//! Prices: daily bars, adjusted and aggregated on request.
//!
//! Prices are stored raw, in packed columns of scaled integers. Adjustment and output work on whole columns instead of
//! a struct per row, because ten years of prices are the largest response of the service.

pub(crate) mod history;
pub(crate) mod latest;
pub(crate) mod market;
mod price_encoder;
mod series;
