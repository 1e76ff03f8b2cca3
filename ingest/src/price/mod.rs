//! Price rows: parsed into scaled integers and grouped into price batches.

pub(crate) mod bar_parser;
pub(crate) mod fixed_point;
pub(crate) mod price_batch;
