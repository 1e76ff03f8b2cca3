//! Reviews of the served market: audits, comparisons of generations, effects of loads and explanations of metrics.

pub(crate) mod audit;
mod compare;
pub(crate) mod diff;
pub(crate) mod effect;
pub(crate) mod explain;
pub(crate) mod gate;
pub(crate) mod quality;
pub(crate) mod security;
pub(crate) mod sources;

pub(crate) use compare::TABLES;
