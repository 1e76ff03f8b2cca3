//! Price rows: parsing into scaled integers, and grouping into price batches.

pub(crate) mod bar_parser;
pub(crate) mod conflicting_prices;
pub(crate) mod price_batch;
