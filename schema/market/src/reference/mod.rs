//! Reference data: the standard code or name of each sector, exchange and country.
//!
//! A look-up accepts any of the names that vendors use. In feed rows, an unknown name stays as the vendor wrote it.

mod country;
mod exchange;
mod sector;
mod table;

pub use country::Country;
pub use exchange::Exchange;
pub use sector::Sector;
pub use table::plain;
