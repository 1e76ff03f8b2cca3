//! Audit finding with its examples, and the derivation inputs that the checks read: date, source policy and rules.

use chrono::{Months, NaiveDate};
use market::history::SourcePolicy;
use market::metrics::Rules;
use serde::Serialize;

pub(super) const MAX_EXAMPLES: usize = 10;

/// Result of one check.
#[derive(Debug, Serialize)]
pub struct AuditFinding {
    /// Stable name, for example `held_rows`.
    pub check: &'static str,
    /// Group within the check, for example the reason of quarantined rows.
    pub topic: Option<String>,
    /// Title of the check, for people.
    pub title: &'static str,
    /// Number of all matches; 0 if nothing matches.
    pub count: i64,
    /// First ten matches.
    pub first: Vec<FindingExample>,
    /// Next step for the operator.
    pub next: &'static str,
}

/// One match of a check.
#[derive(Debug, Serialize)]
pub struct FindingExample {
    /// Symbol of the security, or sequence of the log message.
    pub symbol: String,
    /// Description of the problem, for people.
    pub seen: String,
}

/// Inputs from which the served generation is derived.
pub(crate) struct AuditContext {
    pub(crate) as_of: NaiveDate,
    pub(crate) policy: SourcePolicy,
    pub(crate) rules: Rules,
}

/// One month before the market date.
pub(super) fn month_before(as_of: NaiveDate) -> NaiveDate {
    as_of.checked_sub_months(Months::new(1)).unwrap_or(as_of)
}
