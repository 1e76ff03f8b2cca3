//! Module index: dirty securities in `touched.rs`, targets in `input.rs`, the parallel stages in `pipeline.rs`, sector
//! statistics in `sectors.rs`.

pub(crate) mod input;
pub(crate) mod pipeline;
pub mod sectors;
pub mod touched;
