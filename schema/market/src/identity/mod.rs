//! Security identity: finds the security of a row from the row's symbol and day (R26, R27).
//!
//! A vendor's permanent reference for a security (`security_ref`) identifies the vendor's record of this security. A
//! record without such a reference is identified by its record id, or else by its symbol. Records of several vendors
//! are joined only if they claim the same symbol for at least one common day. Records are never joined because of equal
//! names. A symbol that no reference record claims becomes a provisional security, unless it is another spelling of a
//! known preferred share. The result does not depend on the order of the records.

mod claim;
mod directory;
mod join;
pub mod resolve;
mod tenure;
#[cfg(test)]
mod tests;

pub use directory::SecurityDirectory;
pub use tenure::{Identity, TickerTenure};
