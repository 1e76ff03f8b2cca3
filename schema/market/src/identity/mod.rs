//! Security identity: finds the security of a row from the row's symbol and day (R26, R27).
//!
//! A reference record is a vendor's description of a security. It claims the symbols of the security, each for a
//! period. Rows of one source with the same key are versions of one reference record. The key is the vendor's permanent
//! reference for the security (`security_ref`). Without it, the key is the record id. Without both, the key is the
//! symbol.
//!
//! Reference records of several vendors are joined into one security if they claim the same symbol. Their claims must
//! have at least one common day. Nothing else joins records: equal names, for example, have no effect.
//!
//! A symbol that no reference record claims becomes a provisional security. There is one exception: another spelling of
//! a known preferred share belongs to that share. The order of the records has no effect on the result.
//!
//! Securities also have addresses: identifiers, and the market of a listing.

mod address;
mod directory;
pub mod resolve;
#[cfg(test)]
mod tests;

pub use address::{AddressError, IdentifierScheme, SecurityAddress, is_plain_symbol, split_address};
pub use directory::{Identity, SecurityDirectory, TickerTenure};
