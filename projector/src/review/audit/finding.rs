//! Finding of an audit with examples, and the inputs of the served generation that the checks use.

use chrono::{Months, NaiveDate};
use market::history::SourcePolicy;
use market::metrics::Rules;
use serde::Serialize;

pub(super) const MAX_EXAMPLES: usize = 10;

/// Finding: result of one check.
#[derive(Debug, Serialize)]
pub struct AuditFinding {
    /// Stable name of the check, for example `held_rows`.
    pub check: &'static str,
    /// Group of matches within the check, for example a quarantine reason; `None` if the check has no groups.
    pub topic: Option<String>,
    /// Title of the check, for the reader of the report.
    pub title: &'static str,
    /// Number of matching securities, rows or messages; 0 if the check found no problem.
    pub count: i64,
    /// First ten matches of the check.
    pub first: Vec<FindingExample>,
    /// Next step for the operator.
    pub next: &'static str,
}

/// Security, row or message that a check found.
#[derive(Debug, Serialize)]
pub struct FindingExample {
    /// Symbol of the security; for a dead letter, sequence of its log message.
    pub symbol: String,
    /// Description of the problem, for the reader of the report.
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
