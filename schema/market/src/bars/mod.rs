//! Price bars in columns, their merge, and their division by calendar year. Prices are exact scaled integers (price x
//! 10^scale). Of several bars of one day, a merge keeps the greatest version.
//!
//! Error of merging, appending or rescaling bars.

mod column;
mod columns;
#[cfg(test)]
mod examples;
mod merge;
mod superseded;
#[cfg(test)]
mod tests;

pub use column::{BarColumn, MISSING};
pub use columns::{Bar, Bars};
pub use merge::{BarVersion, VersionDictionary};
pub use superseded::SupersededBars;

/// Error of merging, appending or rescaling bars.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum BarsError {
    #[error("bars have more than 65,536 versions")]
    TooManyVersions,
    #[error("a price does not fit the scale of its neighbours")]
    ScaleOverflow,
    #[error("a bar repeats a bar that does not exist")]
    NoOriginal,
}
