//! Price rows: parsed into scaled integers and grouped into price batches.

pub(crate) mod batch;
pub(crate) mod fixed_point;
pub(crate) mod parse;
