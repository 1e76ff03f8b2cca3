//! Price bars in columns, their merge and their division by calendar year. Record batches and tables store the same
//! columns in encoded form.
//!
//! Prices are exact scaled integers (price x 10^scale). Every bar has a version. If several bars have the same day, a
//! merge uses the bar with the greatest version. The order of merging does not matter.

mod column;
mod columns;
mod error;
#[cfg(test)]
mod examples;
mod merge;
#[cfg(test)]
mod tests;
mod version;
mod years;

pub use column::{BarColumn, MISSING};
pub use columns::{Bar, Bars};
pub use error::BarsError;
pub use version::{BarVersion, VersionDictionary};
