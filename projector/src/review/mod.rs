//! Module index: daily checks in `audit/`, comparison of generations in `diff/`, effect of loads in `effect/`,
//! report on the sources in `quality/`, explanations of metrics in `explain.rs`, HTML pages in `html_page.rs`.

pub(crate) mod atomic_file;
pub mod audit;
pub mod diff;
pub mod effect;
pub mod explain;
pub(crate) mod html_page;
mod html_plot;
pub mod quality;
pub(crate) mod security;
