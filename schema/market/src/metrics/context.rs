//! Derivation context: inputs that are the same for all securities, such as the as-of date and the source policy.

use chrono::NaiveDate;

use super::exchange_rates::ExchangeRates;
use super::prices::risk::MonthlyReturns;
use super::rules::Rules;
use crate::history::SourcePolicy;

/// Inputs of the derivation that are the same for all securities.
#[derive(Debug, Clone, Copy)]
pub struct DerivationContext<'a> {
    /// As-of date of the figures: the newest known session, or an earlier day for a historical request.
    pub as_of: NaiveDate,
    /// Newest known session. For a historical request, it is later than `as_of`.
    pub newest: NaiveDate,
    /// Monthly returns of the benchmark, for beta; `None` without a benchmark.
    pub benchmark: Option<&'a MonthlyReturns>,
    /// Exchange rates.
    pub rates: &'a ExchangeRates,
    /// Currency in which market capitalisations of securities are added and compared, an ISO 4217 code.
    pub reporting_currency: &'a str,
    /// Source policy (R32).
    pub policy: &'a SourcePolicy,
    /// Rule parameters.
    pub rules: &'a Rules,
}
