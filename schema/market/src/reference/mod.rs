//! Reference lists under one spelling: sectors, exchanges and countries, whatever a vendor calls them.
//!
//! A name no list knows is left to the caller, which keeps it as it stands: a feed may know more than this crate.

mod country;
mod exchange;
mod sector;
mod spelling;

pub use country::Country;
pub use exchange::Exchange;
pub use sector::Sector;
pub use spelling::plain;
