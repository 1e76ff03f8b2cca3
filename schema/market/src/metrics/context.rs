//! Derivation context: market date, benchmark, source policy and rule parameters shared by all securities.

use chrono::NaiveDate;

use super::prices::risk::MonthlyReturns;
use super::rules::Rules;
use crate::history::SourcePolicy;

/// Context shared by the derivations of all securities.
#[derive(Debug, Clone, Copy)]
pub struct DerivationContext<'a> {
    /// As-of date of the figures: the newest known session, or an earlier day that was requested.
    pub as_of: NaiveDate,
    /// Newest known session. It is later than `as_of` if an earlier day was requested.
    pub newest: NaiveDate,
    /// Monthly returns of the benchmark, for beta.
    pub benchmark: Option<&'a MonthlyReturns>,
    /// Source policy (R32).
    pub policy: &'a SourcePolicy,
    /// Rule parameters.
    pub rules: &'a Rules,
}
