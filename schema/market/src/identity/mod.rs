//! Security identity: finds the security of a row from the row's symbol and day (R26, R27).
//!
//! The vendor's permanent reference identifies a security. A record without a reference is identified by its record id,
//! or else by its symbol. Records of several vendors are joined only if they claim the same symbol for at least one
//! common day. Equal names never join records. A symbol that no reference record claims is a provisional security. The
//! result does not depend on the order of the records.

mod claim;
mod directory;
mod join;
pub mod resolve;
mod tenure;
#[cfg(test)]
mod tests;

pub use directory::SecurityDirectory;
pub use tenure::{Identity, TickerTenure};
