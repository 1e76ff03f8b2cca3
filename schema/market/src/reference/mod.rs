//! Reference data in one spelling: sectors, exchanges and countries, with look-up by the names that vendors use.
//!
//! A name that is not found is unknown. Callers then keep the vendor's name.

mod country;
mod exchange;
mod sector;
mod table;

pub use country::Country;
pub use exchange::Exchange;
pub use sector::Sector;
pub use table::plain;
