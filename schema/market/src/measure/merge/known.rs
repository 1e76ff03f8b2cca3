//! What a day knows: what had happened or been declared by then (R8, R33).
//!
//! A row that names its declaration date is known from that day on. One that does not was known when its feed was
//! taken, so the market's own date knows it however far ahead it lies. Looking back, feeds without declaration dates
//! would tell the future: there such a row is known 30 days before it takes effect, about as far ahead as boards
//! declare.

use chrono::{Days, NaiveDate};

use crate::measure::market::Market;

/// Days ahead of its effect that an undated row is taken as declared, looking back.
const DECLARED_AHEAD: u64 = 30;

/// The knowledge of a market's date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    as_of: NaiveDate,
    undated_through: NaiveDate,
}

impl Known {
    pub(crate) fn on(market: &Market<'_>) -> Self {
        let as_of = market.as_of;
        let ahead = as_of.checked_add_days(Days::new(DECLARED_AHEAD)).unwrap_or(NaiveDate::MAX);
        Self { as_of, undated_through: if as_of < market.newest { ahead } else { NaiveDate::MAX } }
    }

    /// Whether something declared on a day, if that is known, and taking effect on another is known.
    pub(crate) fn has(&self, declared: Option<NaiveDate>, effective: NaiveDate) -> bool {
        match declared {
            Some(declared) => declared <= self.as_of,
            None => effective <= self.undated_through,
        }
    }

    /// The day whose knowledge it is.
    pub(crate) fn as_of(&self) -> NaiveDate {
        self.as_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::SourcePolicy;
    use crate::measure::rules::Rules;

    #[test]
    fn undated_rows_are_known_now_but_not_long_ago() {
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        let check = |as_of: &str, declared: Option<&str>, effective: &str, expected| {
            let policy = SourcePolicy::default();
            let (as_of, newest) = (date(as_of), date("2024-06-28"));
            let known = Known::on(&Market {
                as_of,
                newest,
                benchmark: None,
                policy: &policy,
                rules: &Rules::DEFAULT,
            });
            assert_eq!(
                known.has(declared.map(date), date(effective)),
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
    }
}
