//! What every check is given and what it answers.

use chrono::{Months, NaiveDate};
use market::history::SourcePolicy;
use market::measure::Rules;
use serde::Serialize;

/// Securities a finding names.
pub(super) const MAX_EXAMPLES: usize = 10;

/// What one check found.
#[derive(Debug, Serialize)]
pub struct AuditFinding {
    /// Stable name, for example `held_rows`.
    pub check: &'static str,
    /// What the findings of one check are told apart by, for example the reason rows are held for.
    pub topic: Option<String>,
    /// What the check looks for, for people.
    pub title: &'static str,
    /// All that was found, beyond the first ten too; 0 when nothing looks wrong.
    pub count: i64,
    /// The first ten.
    pub first: Vec<FindingExample>,
    /// What to do next.
    pub next: &'static str,
}

/// Something to look at.
#[derive(Debug, Serialize)]
pub struct FindingExample {
    /// The security, or the message of the log.
    pub symbol: String,
    /// What looks wrong with it, for people.
    pub seen: String,
}

/// The generation that is looked at, and what it was derived with.
pub(super) struct AuditContext {
    pub(super) as_of: NaiveDate,
    pub(super) policy: SourcePolicy,
    pub(super) rules: Rules,
}

/// A month before the market's date.
pub(super) fn month_before(as_of: NaiveDate) -> NaiveDate {
    as_of.checked_sub_months(Months::new(1)).unwrap_or(as_of)
}
