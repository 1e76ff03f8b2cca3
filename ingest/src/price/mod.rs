//! Price rows: parsed into scaled integers and grouped into price batches.

pub(crate) mod price_batch;
pub(crate) mod fixed_point;
pub(crate) mod bar_parser;
