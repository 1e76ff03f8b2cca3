//! Reference data: one standard spelling for each sector, exchange and country, found by the names that vendors use.
//!
//! If a vendor's name is not found, callers keep this name.

mod country;
mod exchange;
mod sector;
mod table;

pub use country::Country;
pub use exchange::Exchange;
pub use sector::Sector;
pub use table::plain;
