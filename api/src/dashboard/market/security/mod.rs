//! Pages of one security.

mod calls;
pub(crate) mod csv_link;
mod data_quality;
mod dividend_blocks;
pub(crate) mod explanation;
mod figures;
pub(crate) mod page;
mod tables;
