//! Source policy: the choice between several sources that report the same kind of data (R32).
//!
//! A policy rule gives a source a rank for one kind of record. The rule may be limited to a range of days. On each day,
//! the sources with the smallest rank are preferred. Sources without a rule for the day come after all ranked sources.
//! The rank of a source on a day is its [`Standing`].
//!
//! The default between sources of equal standing is an overlay: the newest row is on top. Of two rows, the newer one is
//! the row that its source observed later. If both were observed at the same time, it is the row of the source whose
//! name sorts first. The comparison uses only these two rows. A later load of other rows therefore does not change the
//! result, and neither does the order in which loads arrive.
//!
//! The rules for one kind of record divide the calendar into date ranges. A new range begins on the first day of each
//! rule, and on the day after a rule's last day. Dividends and splits with an ex-date in one range come from sources of
//! one standing: the smallest rank with a valid record in the range.
//!
//! For prices, fund data and company figures, the row is chosen separately for each date. It is the row of the smallest
//! rank, and of these rows the newest.
//!
//! The source `manual` is not a vendor. Its records were entered by an operator. Each of them overrides the matching
//! record of the vendors.

use std::cmp::Reverse;

use chrono::{DateTime, NaiveDate, Utc};

use crate::day::next_day;
use crate::event::Kind;
use crate::history::{PolicyRule, SourcePolicy};

/// Name of the source for records that an operator entered. Such a record overrides the matching record of a vendor.
pub const MANUAL: &str = "manual";

/// Sentence for the choice between sources without ranks.
pub const DEFAULT_CHOICE: &str = "no policy ranks the sources: the newest row is on top";

/// Rank of a source on a day. The smallest standing is preferred; a source without a rule comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    is_unranked: bool,
    rank: Option<i32>,
}

impl Standing {
    /// Standing of a source on a day, by the rules for one kind of record.
    pub(crate) fn new(policy: &SourcePolicy, kind: Kind, source: &str, day: NaiveDate) -> Self {
        let of_day = rules(policy, kind).filter(|rule| {
            rule.source == source
                && rule.from.is_none_or(|from| from <= day)
                && rule.to.is_none_or(|to| day <= to)
        });
        let rank = of_day.map(|rule| rule.rank).min();
        Self { is_unranked: rank.is_none(), rank }
    }

    pub(crate) fn is_ranked(self) -> bool {
        !self.is_unranked
    }
}

/// Row of a source that competes with rows of other sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceCandidate<'a> {
    /// Name of the source.
    pub source: &'a str,
    /// Time at which the source observed the row.
    pub observed_at: DateTime<Utc>,
}

impl<'a> SourceCandidate<'a> {
    /// Sort key by age, the newest row first.
    pub(crate) fn newest_first(self) -> (Reverse<DateTime<Utc>>, &'a str) {
        (Reverse(self.observed_at), self.source)
    }
}

/// Sort key of a row on a day. The row with the smallest key is preferred.
///
/// Rows of the source `manual` come first. Rows of vendors are sorted by standing, then by age (the newest first).
pub(crate) fn preference<'a>(
    policy: &SourcePolicy,
    kind: Kind,
    candidate: SourceCandidate<'a>,
    day: NaiveDate,
) -> (bool, Standing, (Reverse<DateTime<Utc>>, &'a str)) {
    let standing = Standing::new(policy, kind, candidate.source, day);
    (candidate.source != MANUAL, standing, candidate.newest_first())
}

/// First days of the date ranges for one kind of record, ascending. Within a range, the same policy rules apply on
/// every day. The first range begins with [`NaiveDate::MIN`].
pub(crate) fn range_starts(policy: &SourcePolicy, kind: Kind) -> Vec<NaiveDate> {
    let bounds = rules(policy, kind).flat_map(|rule| [rule.from, rule.to.map(next_day)]).flatten();
    let mut starts: Vec<NaiveDate> = std::iter::once(NaiveDate::MIN).chain(bounds).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Position of the date range that contains a day. `starts` contains the first day of each range, in ascending order.
pub(crate) fn range_of(starts: &[NaiveDate], day: NaiveDate) -> usize {
    starts.partition_point(|start| *start <= day).saturating_sub(1)
}

fn rules(policy: &SourcePolicy, kind: Kind) -> impl Iterator<Item = &PolicyRule> {
    policy.rules.iter().filter(move |rule| rule.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn ranked_before_newest_before_name() {
        let rule = |source: &str, from: Option<&str>, rank| PolicyRule {
            kind: Kind::Dividend,
            source: source.into(),
            from: from.map(date),
            to: None,
            rank,
        };
        let policy =
            SourcePolicy { rules: vec![rule("a", Some("2020-01-01"), 2), rule("b", Some("2022-01-01"), 1)] };
        let candidate = |source, second| SourceCandidate {
            source,
            observed_at: DateTime::from_timestamp(second, 0).unwrap(),
        };
        let preferred = |kind, day: NaiveDate| {
            let all = [candidate("a", 1), candidate("b", 2), candidate("c", 3), candidate("d", 3)];
            all.into_iter().min_by_key(|candidate| preference(&policy, kind, *candidate, day))
        };
        let check = |day, expected| {
            assert_eq!(preferred(Kind::Dividend, date(day)).map(|c| c.source), Some(expected), "{day}");
        };
        check("2019-12-31", "c");
        check("2020-01-01", "a");
        check("2022-01-01", "b");
        assert_eq!(preferred(Kind::Split, date("2022-01-01")).map(|c| c.source), Some("c"));
        assert_eq!(
            range_starts(&policy, Kind::Dividend),
            [NaiveDate::MIN, date("2020-01-01"), date("2022-01-01")]
        );
        assert_eq!(range_of(&range_starts(&policy, Kind::Dividend), date("2021-06-01")), 1);
    }

    #[test]
    fn a_rule_holds_from_its_first_day_through_its_last() {
        let rule = |source: &str, from: Option<&str>, to: Option<&str>, rank| PolicyRule {
            kind: Kind::Price,
            source: source.into(),
            from: from.map(date),
            to: to.map(date),
            rank,
        };
        let candidate = |source| SourceCandidate { source, observed_at: DateTime::UNIX_EPOCH };
        let check = |rules: &[PolicyRule], day: &str, expected: &str| {
            let policy = SourcePolicy { rules: rules.to_vec() };
            for all in [["a", "b"], ["b", "a"]] {
                let key = |row: &SourceCandidate<'static>| preference(&policy, Kind::Price, *row, date(day));
                let found = all.map(candidate).into_iter().min_by_key(key);
                assert_eq!(found.map(|found| found.source), Some(expected), "{day} {rules:?}");
            }
        };
        let year = [rule("b", Some("2020-01-01"), Some("2020-12-31"), 1)];
        for (day, expected) in
            [("2019-12-31", "a"), ("2020-01-01", "b"), ("2020-12-31", "b"), ("2021-01-01", "a")]
        {
            check(&year, day, expected);
        }
        // If a source has several rules for a day, its smallest rank counts. Sources of equal rank are sorted by name.
        check(
            &[rule("a", None, None, 2), rule("b", None, None, 3), rule("b", None, None, 1)],
            "2020-01-01",
            "b",
        );
        check(&[rule("a", None, None, 1), rule("b", None, None, 1)], "2020-01-01", "a");
        check(&[rule("b", None, None, -1), rule("a", None, None, 0)], "2020-01-01", "b");
        let policy = SourcePolicy { rules: vec![year[0].clone(), rule("a", Some("2020-01-01"), None, 2)] };
        let starts = range_starts(&policy, Kind::Price);
        assert_eq!(starts, [NaiveDate::MIN, date("2020-01-01"), date("2021-01-01")]);
        for (day, range) in [("2019-12-31", 0), ("2020-01-01", 1), ("2020-12-31", 1), ("2021-01-01", 2)] {
            assert_eq!(range_of(&starts, date(day)), range, "{day}");
        }
        assert_eq!(range_of(&starts, NaiveDate::MIN), 0);
    }
}
