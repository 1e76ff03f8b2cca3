//! Who a row belongs to (R26, R27): securities out of reference records, and the days each held its symbols.
//!
//! A security is one vendor record (its permanent reference, else its symbol), joined with other vendors' records
//! only where both claim the same symbol on the same days; never by name. A symbol nobody claims is a provisional
//! security. Everything is a pure function of the set of records.

mod claim;
mod directory;
mod held;
mod join;
#[cfg(test)]
mod tests;

pub use directory::Directory;
pub use held::{Identity, Span};
