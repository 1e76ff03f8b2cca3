//! Price bars in columns, their merge and their division by year. Record batches, Postgres and memory use the same
//! form.
//!
//! A column contains scaled integers (price x 10^scale, exact). Every bar has a version, and the greatest version of a
//! day wins, in any order of merging.

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
