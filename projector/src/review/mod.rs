//! Review of a generation: audit findings, differences between generations, explanations.

pub mod audit;
pub mod diff;
pub mod explain;
pub(crate) mod security;
