//! Random histories, and a reference model that computes the figures in another way.

pub(crate) mod exact;
pub(crate) mod market;
pub(crate) mod noise;
