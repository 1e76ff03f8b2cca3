//! What every security is measured against, and by which rules.

use chrono::NaiveDate;

use super::month_ends::MonthEnds;
use super::rules::Rules;
use crate::history::SourcePolicy;

/// What every security is measured against.
#[derive(Debug, Clone, Copy)]
pub struct Market<'a> {
    /// The market's date: the newest session known, or an earlier one to look back.
    pub as_of: NaiveDate,
    /// The newest session known; later than `as_of` when looking back.
    pub newest: NaiveDate,
    /// Month ends of the benchmark, for beta.
    pub benchmark: Option<&'a MonthEnds>,
    /// Which source is believed.
    pub policy: &'a SourcePolicy,
    /// The numbers in the rules that are this service's own choice.
    pub rules: &'a Rules,
}
