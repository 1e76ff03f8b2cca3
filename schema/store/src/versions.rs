//! Data versions that are or were served, each with the inputs of its derivation, such as the market settings.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use market::history::SourcePolicy;
use market::metrics::currency::Currency;
use market::metrics::{METHOD_VERSION, Rules};
use market::row::JsonColumn;
use serde::{Deserialize, Serialize};
use tokio_postgres::{Error, Row};

use crate::FromRow;
use crate::ids::{GenerationId, JournalPosition};

/// Selects the data version that is served now. Needs the same search path as [`NAMED_VERSION`].
pub const CURRENT_VERSION: &str = include_str!("../queries/past/current_version.sql");
/// Selects a served data version by the parts of its name: generation, sequence and journal position (null if the name
/// has none). The search path must start with the schema of the served generation, then `control`.
pub const NAMED_VERSION: &str = include_str!("../queries/past/named_version.sql");
/// Selects the data version that was served at an instant. Needs the same search path as [`NAMED_VERSION`].
pub const VERSION_AT: &str = include_str!("../queries/past/version_at.sql");

/// Name of a data version, as in responses: `g3.184467`, or with the journal position `g3.184467.92`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionName {
    /// Generation that was served.
    pub generation: GenerationId,
    /// Sequence of the last log message that the data version contains.
    pub sequence: i64,
    /// Journal position; `None` if the name has none.
    pub position: Option<JournalPosition>,
}

/// Error for a text that is not the name of a data version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the data_version of a response")]
pub struct VersionNameError;

impl FromStr for VersionName {
    type Err = VersionNameError;

    fn from_str(text: &str) -> Result<Self, VersionNameError> {
        let numbers = text.strip_prefix('g').ok_or(VersionNameError)?.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<i64>().ok().filter(|_| is_number).ok_or(VersionNameError)
        });
        let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
        let (generation, sequence, position) = match numbers[..] {
            [generation, sequence] => (generation, sequence, None),
            [generation, sequence, position] => (generation, sequence, Some(JournalPosition(position))),
            _ => return Err(VersionNameError),
        };
        let generation = GenerationId(i32::try_from(generation).map_err(|_| VersionNameError)?);
        Ok(Self { generation, sequence, position })
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}.{}", self.generation, self.sequence)?;
        self.position.map_or(Ok(()), |position| write!(f, ".{position}"))
    }
}

crate::sql_row! {
    /// Settings of a generation for figures that compare securities. They are chosen when the generation is created.
    #[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
    pub struct MarketSettings {
        /// Symbol of the benchmark security. The metric beta compares month-end returns with those of this security
        #[arg(long, value_name = "SYMBOL", env = "BENCHMARK_SYMBOL", default_value = "SPY")]
        pub benchmark: String,
        /// Reporting currency, an ISO 4217 code. Sector sums and screeners convert market capitalisations to it
        #[arg(long, value_name = "CURRENCY", env = "REPORTING_CURRENCY", default_value = "USD", value_parser = parse_currency)]
        #[serde(default = "us_dollar")]
        pub reporting_currency: String,
    }
}

fn parse_currency(text: &str) -> Result<String, String> {
    let known = Currency::parse(text).filter(|currency| currency.minor.is_none());
    known
        .map(|currency| currency.code)
        .ok_or_else(|| "is not an ISO 4217 currency code such as USD".to_owned())
}

/// Reporting currency of a backup from before it could be chosen.
fn us_dollar() -> String {
    "USD".to_owned()
}

/// Data version that is or was served, with the inputs of its derivation.
#[derive(Debug)]
pub struct ServedVersion {
    /// Generation that was served.
    pub generation: GenerationId,
    /// Log sequence in the name of the version.
    pub sequence: i64,
    /// Journal position of the version.
    pub position: JournalPosition,
    /// True if the name includes the journal position, because several versions have the same generation and sequence.
    pub is_repeated: bool,
    /// Market date; `None` without any session.
    pub as_of: Option<NaiveDate>,
    /// Log sequence of the facts from which the version was derived. It is lower than `sequence` if the log messages
    /// between the two sequences did not change the data.
    pub facts_sequence: i64,
    /// Time at which the version was committed. In a row of [`CURRENT_VERSION`], it is the time of the query.
    pub at: DateTime<Utc>,
    /// Name of the fact set, which is also the schema of its tables.
    pub fact_set: String,
    /// Version of the rules for deriving the data.
    pub method_version: String,
    /// Version of the program that derived the data. The query [`CURRENT_VERSION`] returns an empty text instead.
    pub program_version: String,
    /// Benchmark and reporting currency.
    pub market: MarketSettings,
    /// Source policy and rule parameters; `None` if this program cannot read them.
    pub inputs: Option<(SourcePolicy, Rules)>,
    /// Value of the field `sync_from` in responses with this version.
    pub sync_from: String,
    /// True if this version is served now.
    pub is_current: bool,
    /// True if the fact set of the version still exists.
    pub has_facts: bool,
}

impl ServedVersion {
    /// Reads a row of [`CURRENT_VERSION`], [`NAMED_VERSION`] or [`VERSION_AT`].
    ///
    /// # Errors
    /// A column is missing.
    pub fn from_row(row: &Row) -> Result<Self, Error> {
        let policy = row.try_get::<_, JsonColumn<SourcePolicy>>("policy");
        let rules = row.try_get::<_, JsonColumn<Rules>>("rules");
        let position: JournalPosition = row.try_get("version_position")?;
        Ok(Self {
            generation: row.try_get("version_generation")?,
            sequence: row.try_get("version_sequence")?,
            position,
            is_repeated: row.try_get("version_is_repeated")?,
            as_of: row.try_get("version_as_of")?,
            facts_sequence: row.try_get("sequence")?,
            at: row.try_get("at")?,
            fact_set: row.try_get("fact_set")?,
            method_version: row.try_get("method_version")?,
            program_version: row.try_get("program_version")?,
            market: MarketSettings::from_row(row)?,
            inputs: policy.ok().zip(rules.ok()).map(|(policy, rules)| (policy.0, rules.0)),
            sync_from: format!("{}.{position}", row.try_get::<_, &str>("journal")?),
            is_current: row.try_get("is_current")?,
            has_facts: row.try_get("has_facts")?,
        })
    }

    /// Policy and rules for deriving the data version again. `None` if this program has another method version, or
    /// cannot read the stored policy or rules.
    pub fn derivable(&self) -> Option<&(SourcePolicy, Rules)> {
        self.inputs.as_ref().filter(|_| self.method_version == METHOD_VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_as_answers_name_it() {
        let name = |position: Option<i64>| VersionName {
            generation: GenerationId(3),
            sequence: 184_467,
            position: position.map(JournalPosition),
        };
        assert_eq!("g3.184467".parse(), Ok(name(None)));
        assert_eq!("g3.184467.92".parse(), Ok(name(Some(92))));
        for text in ["", "g", "g3", "3.1", "g3.", "g3.-1", "g3.1.", "g3.1.2.3", "g9999999999.1", "g3.+1"] {
            assert_eq!(text.parse::<VersionName>(), Err(VersionNameError), "{text}");
        }
    }
}
