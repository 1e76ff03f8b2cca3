//! Random histories and an independent way to the same numbers.

pub(crate) mod exact;
pub(crate) mod market;
pub(crate) mod noise;
