//! Price bars in columns, their merge, and their division by calendar year. Prices are exact scaled integers (price x
//! 10^scale). Of several bars of one day, a merge keeps the greatest version.

mod column;
mod columns;
mod merge;
mod superseded;
#[cfg(test)]
mod tests;
mod version;

pub use column::{BarColumn, MISSING};
pub use columns::{Bar, Bars};
pub use superseded::SupersededBars;
pub use version::{BarVersion, BarsError, VersionDictionary};
