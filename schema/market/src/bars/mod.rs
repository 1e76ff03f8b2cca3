//! Price bars in columns, their merge, and their division by calendar year. Prices are exact scaled integers (price x
//! 10^scale). Of several bars of one day, a merge keeps the greatest version.

mod column;
mod columns;
mod error;
#[cfg(test)]
mod examples;
mod merge;
mod superseded;
#[cfg(test)]
mod tests;
mod version;
mod years;

pub use column::{BarColumn, MISSING};
pub use columns::{Bar, Bars};
pub use error::BarsError;
pub use superseded::SupersededBars;
pub use version::{BarVersion, VersionDictionary};
