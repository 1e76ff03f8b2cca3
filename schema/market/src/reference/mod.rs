//! Reference data under one spelling: sectors, exchanges and countries, looked up by vendors' names.
//!
//! Unknown names are left to the caller, which keeps them unchanged.

mod country;
mod exchange;
mod sector;
mod spelling;

pub use country::Country;
pub use exchange::Exchange;
pub use sector::Sector;
pub use spelling::plain;
