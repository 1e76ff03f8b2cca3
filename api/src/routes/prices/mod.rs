//! Prices: daily bars, adjusted and aggregated on request.
//!
//! Prices are stored raw, in packed columns of scaled integers. Adjustment and output work on these columns, because a
//! struct per row would be slower. Ten years of prices are the largest response.

pub(crate) mod history;
pub(crate) mod latest;
pub(crate) mod market;
mod price_encoder;
mod series;
