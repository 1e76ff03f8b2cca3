//! Module index: daily checks in `audit/`, comparison of generations in `diff/`, explanations of metrics in
//! `explain.rs`.

pub mod audit;
pub mod diff;
pub mod explain;
pub(crate) mod security;
