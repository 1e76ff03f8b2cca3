//! Reviews of the served market: audits, comparisons of generations, effects of loads and explanations of metrics.

pub(crate) mod atomic_file;
pub mod audit;
pub mod diff;
pub mod effect;
pub mod explain;
pub mod hidden_runs;
pub(crate) mod html_page;
pub mod quality;
pub(crate) mod security;
