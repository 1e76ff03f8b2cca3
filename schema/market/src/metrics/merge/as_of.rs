//! As-of view: the facts that were known on the as-of date (R8, R33). A known fact is called visible.
//!
//! A fact, such as a dividend or a split, is visible from its declaration date on, and at the latest from its effective
//! day (ex-date) on. There are two cases for a fact without a declaration date:
//!
//! - The as-of date is the current market date. The fact is always visible: a vendor already delivers it, so it was
//!   declared.
//! - The as-of date is earlier. The fact is visible from 30 days before its effective day on, because boards usually
//!   declare about 30 days ahead.

use chrono::{Days, NaiveDate};

use crate::metrics::context::DerivationContext;

/// A fact without a declaration date is visible from this number of days before its ex-date on. On the current market
/// date, it is always visible.
const DECLARED_AHEAD: u64 = 30;

/// Visibility of facts on an as-of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AsOfView {
    pub as_of: NaiveDate,
    undated_through: NaiveDate,
}

impl AsOfView {
    /// View in which every fact is visible.
    pub(crate) const UNLIMITED: Self = Self { as_of: NaiveDate::MAX, undated_through: NaiveDate::MAX };

    pub(crate) fn new(context: &DerivationContext<'_>) -> Self {
        let as_of = context.as_of;
        let ahead = as_of.checked_add_days(Days::new(DECLARED_AHEAD)).unwrap_or(NaiveDate::MAX);
        Self { as_of, undated_through: if as_of < context.newest { ahead } else { NaiveDate::MAX } }
    }

    /// True if a fact with the declaration date `declared` and the effective date `effective` is visible.
    pub(crate) fn is_visible(&self, declared: Option<NaiveDate>, effective: NaiveDate) -> bool {
        effective <= self.as_of
            || match declared {
                Some(declared) => declared <= self.as_of,
                None => effective <= self.undated_through,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::SourcePolicy;
    use crate::metrics::rules::Rules;

    #[test]
    fn undated_rows_are_known_now_but_not_long_ago() {
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        let check = |as_of: &str, declared: Option<&str>, effective: &str, expected| {
            let policy = SourcePolicy::default();
            let (as_of, newest) = (date(as_of), date("2024-06-28"));
            let known = AsOfView::new(&DerivationContext {
                as_of,
                newest,
                benchmark: None,
                rates: &crate::metrics::ExchangeRates::NONE,
                reporting_currency: "USD",
                policy: &policy,
                rules: &Rules::DEFAULT,
            });
            assert_eq!(
                known.is_visible(declared.map(date), date(effective)),
                expected,
                "{as_of} {declared:?} {effective}"
            );
        };
        check("2024-06-28", None, "2026-01-02", true);
        check("2024-06-27", None, "2026-01-02", false);
        check("2020-01-02", None, "2020-02-01", true);
        check("2020-01-02", None, "2020-02-02", false);
        check("2020-01-02", Some("2020-01-02"), "2021-01-04", true);
        check("2020-01-02", Some("2020-01-03"), "2020-01-06", false);
        // A row is visible from its ex-date on, even with a later declaration date.
        check("2020-01-06", Some("2020-11-03"), "2020-01-06", true);
        check("2020-01-05", Some("2020-11-03"), "2020-01-06", false);
    }
}
