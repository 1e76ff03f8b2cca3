//! Security identity: which security owns a row of a symbol on a day (R26, R27).
//!
//! A security is one vendor record, identified by the vendor's permanent reference, or else by its symbol. Records of
//! several vendors are joined only if they claim the same symbol on the same days, never by name. A symbol that no
//! reference record claims is a provisional security. All results are pure functions of the set of records.

mod claim;
mod directory;
mod join;
pub mod resolve;
mod tenure;
#[cfg(test)]
mod tests;

pub use directory::SecurityDirectory;
pub use tenure::{Identity, TickerTenure};
