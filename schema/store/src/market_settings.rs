//! Settings of a generation for figures that compare securities: the benchmark of beta, and the reporting currency.

use clap::Args;
use market::metrics::currency::Currency;
use serde::{Deserialize, Serialize};
use tokio_postgres::{Error, Row};

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

impl MarketSettings {
    /// Reads the columns `benchmark` and `reporting_currency`.
    ///
    /// # Errors
    /// A column is missing.
    pub fn from_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            benchmark: row.try_get("benchmark")?,
            reporting_currency: row.try_get("reporting_currency")?,
        })
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
