//! Merge of company figures: from all observations to the figures on one date (R32).
//!
//! The newest record up to the as-of date is the base. If several sources have a record of that date, the preferred one
//! is the base: that of the smallest rank in the source policy, or else the newest one. A figure that is missing in the
//! base is taken from the next record that has it: first from other sources' records of the date, then from earlier
//! records. Such a figure refers to the share count on the date of its record.
//!
//! If a rank chose the base, only records of its source are used. Records of other sources are not used either if their
//! figures are in another currency.
//!
//! A manual record is never the base. If it is not older than the base, its figures replace the figures of the base.

use std::cmp::Reverse;

use chrono::NaiveDate;

use crate::event::{Action, Fundamentals, Kind};
use crate::history::{Observation, SourcePolicy};
use crate::metrics::source_preference::{MANUAL, SourceCandidate, Standing, preference};

/// Merged company figures. Per-share figures and share counts have their own dates, because they can come from earlier
/// records.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MergedFundamentals {
    /// Merged company figures. If `eps_ttm` is present, so is its date `eps_as_of`. If `shares_outstanding` is present,
    /// so is its date `shares_as_of`.
    pub figures: Fundamentals,
    /// Date of the share count to which `book_value_per_share` refers.
    pub book_value_as_of: NaiveDate,
    /// Date of the share count to which `ffo_per_share_ttm` refers.
    pub ffo_as_of: NaiveDate,
    /// Date to which `float_shares` refers.
    pub float_as_of: NaiveDate,
    /// Indexes of the observations from which the figures come, in order of precedence. If a manual record is used, it
    /// is first.
    pub used: Vec<usize>,
}

/// Company figures valid on `as_of`; `None` if no record is dated on or before `as_of`.
pub(crate) fn merge_fundamentals(
    observations: &[Observation<Fundamentals>],
    policy: &SourcePolicy,
    as_of: NaiveDate,
) -> Option<MergedFundamentals> {
    let live: Vec<usize> =
        newest_per_key(observations).into_iter().filter(|i| observations[*i].record.as_of <= as_of).collect();
    let order = |index: &usize| {
        let Observation { source, observed_at, record, .. } = &observations[*index];
        let candidate = SourceCandidate { source, observed_at: *observed_at };
        (Reverse(record.as_of), preference(policy, Kind::Fundamentals, candidate, record.as_of))
    };
    let is_manual = |index: &usize| observations[*index].source == MANUAL;
    let mut vendors: Vec<usize> = live.iter().copied().filter(|index| !is_manual(index)).collect();
    vendors.sort_by_key(order);
    let first = vendors.first().map(|first| &observations[*first]);
    let since = first.map_or(NaiveDate::MIN, |first| first.record.as_of);
    let is_ranked = first
        .is_some_and(|first| Standing::new(policy, Kind::Fundamentals, &first.source, since).is_ranked());
    let manual =
        live.iter().copied().filter(|index| is_manual(index) && observations[*index].record.as_of >= since);
    let manual = manual.max_by_key(|index| observations[*index].record.as_of);
    let mut records = manual.into_iter().chain(vendors);
    let head = records.next()?;
    let mut merged = dated(&observations[head].record);
    merged.used.push(head);
    for index in records {
        let record = &observations[index].record;
        let is_of_base = first.is_some_and(|first| first.source == observations[index].source);
        if is_of_base || (!is_ranked && is_in_one_currency(&merged.figures, record)) {
            fill(&mut merged, record);
            merged.used.push(index);
        }
    }
    Some(merged)
}

/// True if the figures of two records are in one currency, or if the currency of one of them is unknown.
fn is_in_one_currency(a: &Fundamentals, b: &Fundamentals) -> bool {
    let currencies = a.reported_currency.as_ref().zip(b.reported_currency.as_ref());
    currencies.is_none_or(|(a, b)| a == b)
}

/// Indexes of the current records, at most one for each source and date. Withdrawn records are left out.
fn newest_per_key(observations: &[Observation<Fundamentals>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..observations.len()).collect();
    let key = |index: &usize| {
        let o = &observations[*index];
        (o.source.as_str(), o.id.as_deref(), o.record.as_of)
    };
    // Versions of one record have the same id or, without an id, the same date.
    let same = |a: &usize, b: &usize| {
        let ((source_a, id_a, day_a), (source_b, id_b, day_b)) = (key(a), key(b));
        source_a == source_b && id_a == id_b && (id_a.is_some() || day_a == day_b)
    };
    let version = |index: &usize| {
        let row = &observations[*index];
        row.version(u32::from(row.id.is_some() && row.action == Action::Retract))
    };
    let grouped = |index: &usize| {
        let (source, id, day) = key(index);
        (source, id, if id.is_some() { None } else { Some(day) })
    };
    order.sort_by(|a, b| grouped(a).cmp(&grouped(b)).then_with(|| version(a).cmp(&version(b))));
    let winners = order.chunk_by(same).filter_map(|versions| versions.last().copied());
    // One source can have records with different ids for one date. Only the greatest version among these records is
    // used.
    let mut live: Vec<usize> = winners.filter(|index| observations[*index].action == Action::Put).collect();
    let day = |index: &usize| (observations[*index].source.as_str(), observations[*index].record.as_of);
    live.sort_by(|a, b| day(a).cmp(&day(b)).then_with(|| version(a).cmp(&version(b))));
    live.chunk_by(|a, b| day(a) == day(b)).filter_map(|same_day| same_day.last().copied()).collect()
}

fn dated(record: &Fundamentals) -> MergedFundamentals {
    let as_of = record.as_of;
    let mut figures = record.clone();
    figures.eps_as_of = record.eps_ttm.map(|_| record.eps_as_of.unwrap_or(as_of));
    figures.shares_as_of = record.shares_outstanding.map(|_| record.shares_as_of.unwrap_or(as_of));
    MergedFundamentals {
        figures,
        book_value_as_of: as_of,
        ffo_as_of: as_of,
        float_as_of: as_of,
        used: Vec::new(),
    }
}

/// Fills missing figures from an earlier record, and sets their dates to the date of that record.
fn fill(merged: &mut MergedFundamentals, earlier: &Fundamentals) {
    let figures = &mut merged.figures;
    if figures.book_value_per_share.is_none() {
        merged.book_value_as_of = earlier.as_of;
    }
    if figures.ffo_per_share_ttm.is_none() {
        merged.ffo_as_of = earlier.as_of;
    }
    if figures.float_shares.is_none() {
        merged.float_as_of = earlier.as_of;
    }
    // `dated` sets the date of a figure only if the figure is present. A missing figure and its date are therefore
    // filled from the same record.
    figures.fill_absent(&dated(earlier).figures);
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::history::PolicyRule;

    /// Builds an observation. `words` is `source id revision +second as_of` for a record, or `source id revision
    /// -second as_of` for a retraction. The id `-` means no id. `second` is the observation time.
    fn row(words: &str, figures: &[(&str, &str)]) -> Observation<Fundamentals> {
        let words: Vec<&str> = words.split(' ').collect();
        let (action, second) = words[3].split_at(1);
        let mut record = serde_json::json!({ "symbol": "TEST", "as_of": words[4] });
        figures.iter().for_each(|(name, value)| record[*name] = (*value).into());
        Observation {
            source: words[0].into(),
            id: Some(words[1].to_owned()).filter(|id| id != "-"),
            security_ref: None,
            revision: words[2].parse().unwrap(),
            action: if action == "-" { Action::Retract } else { Action::Put },
            observed_at: DateTime::from_timestamp(second.parse().unwrap(), 0).unwrap(),
            line: 1,
            frame: [0; 16],
            record: serde_json::from_value(record).unwrap(),
        }
    }

    fn merged(rows: &[Observation<Fundamentals>], rules: &[PolicyRule]) -> Option<MergedFundamentals> {
        merge_fundamentals(rows, &SourcePolicy { rules: rules.to_vec() }, "2024-06-28".parse().unwrap())
    }

    /// Checks the merged figures of `rows`, and of the same rows in reverse order. `expected` is `eps_ttm eps_as_of
    /// book_value_per_share book_value_as_of`, or `none`.
    #[track_caller]
    fn check(rows: &[Observation<Fundamentals>], rules: &[PolicyRule], expected: &str) {
        let mut turned = rows.to_vec();
        turned.reverse();
        for rows in [rows, &turned] {
            let told = merged(rows, rules).map(|found| {
                let text = |value: Option<rust_decimal::Decimal>| {
                    value.map_or("-".to_owned(), |value| value.to_string())
                };
                let figures = &found.figures;
                let basis = figures.eps_as_of.map_or("-".to_owned(), |day| day.to_string());
                format!(
                    "{} {basis} {} {}",
                    text(figures.eps_ttm),
                    text(figures.book_value_per_share),
                    found.book_value_as_of
                )
            });
            assert_eq!(told.as_deref().unwrap_or("none"), expected);
        }
    }

    #[test]
    fn the_newest_report_counts_and_earlier_ones_fill_it() {
        let march = row("a - 0 +1 2024-03-31", &[("eps_ttm", "3")]);
        let december = row("a - 0 +1 2023-12-31", &[("eps_ttm", "2"), ("book_value_per_share", "20")]);
        let june = row("a - 0 +1 2023-06-30", &[("book_value_per_share", "10"), ("beta", "1.1")]);
        check(&[], &[], "none");
        check(std::slice::from_ref(&december), &[], "2 2023-12-31 20 2023-12-31");
        check(std::slice::from_ref(&march), &[], "3 2024-03-31 - 2024-03-31");
        check(&[march.clone(), december.clone(), june.clone()], &[], "3 2024-03-31 20 2023-12-31");
        check(&[march.clone(), june.clone()], &[], "3 2024-03-31 10 2023-06-30");
        let found = merged(&[june.clone(), december.clone(), march.clone()], &[]).unwrap();
        assert_eq!((found.used, found.figures.beta), (vec![2, 1, 0], Some(dec!(1.1))));
        // A record of the as-of date is used, a record of the day after is not.
        check(
            &[march.clone(), row("a - 0 +1 2024-06-28", &[("eps_ttm", "4")])],
            &[],
            "4 2024-06-28 - 2024-03-31",
        );
        check(&[march, row("a - 0 +1 2024-06-29", &[("eps_ttm", "4")])], &[], "3 2024-03-31 - 2024-03-31");
        // A figure keeps the share basis on which it was reported.
        let dated = row("a - 0 +1 2024-03-31", &[("eps_ttm", "3"), ("eps_as_of", "2024-02-15")]);
        check(&[dated], &[], "3 2024-02-15 - 2024-03-31");
        let bare = row("a - 0 +1 2024-03-31", &[("eps_as_of", "2024-02-15")]);
        check(std::slice::from_ref(&bare), &[], "- - - 2024-03-31");
        check(&[bare, december], &[], "2 2023-12-31 20 2023-12-31");
    }

    #[test]
    fn each_figure_is_filled_with_its_own_basis() {
        let march = row(
            "a - 0 +1 2024-03-31",
            &[("shares_outstanding", "5"), ("float_shares", "4"), ("ffo_per_share_ttm", "3")],
        );
        let december = row(
            "a - 0 +1 2023-12-31",
            &[("shares_outstanding", "9"), ("float_shares", "8"), ("ffo_per_share_ttm", "7")],
        );
        let bases = |found: &MergedFundamentals| {
            [found.figures.shares_as_of.unwrap(), found.float_as_of, found.ffo_as_of]
                .map(|day| day.to_string())
        };
        let whole = merged(&[march, december.clone()], &[]).unwrap();
        assert_eq!(bases(&whole), ["2024-03-31"; 3]);
        assert_eq!(
            [whole.figures.shares_outstanding, whole.figures.float_shares, whole.figures.ffo_per_share_ttm],
            [5, 4, 3].map(|n| Some(n.into()))
        );
        let filled = merged(&[row("a - 0 +1 2024-03-31", &[]), december], &[]).unwrap();
        assert_eq!(bases(&filled), ["2023-12-31"; 3]);
        assert_eq!(
            [
                filled.figures.shares_outstanding,
                filled.figures.float_shares,
                filled.figures.ffo_per_share_ttm
            ],
            [9, 8, 7].map(|n| Some(n.into()))
        );
    }

    #[test]
    fn the_newest_record_of_a_date_is_used() {
        let a = row("a - 0 +1 2024-03-31", &[("eps_ttm", "3")]);
        let b = row("b - 0 +2 2024-03-31", &[("eps_ttm", "4")]);
        let older = row("b - 0 +2 2023-12-31", &[("book_value_per_share", "20")]);
        check(&[a.clone(), b.clone()], &[], "4 2024-03-31 - 2024-03-31");
        let rule = PolicyRule { kind: Kind::Fundamentals, source: "a".into(), from: None, to: None, rank: 1 };
        // A rank chooses a source whole. Without a rank, earlier records of other sources stay.
        check(&[a.clone(), b.clone(), older.clone()], &[rule], "3 2024-03-31 - 2024-03-31");
        check(&[a.clone(), older.clone()], &[], "3 2024-03-31 20 2023-12-31");
        let corrected = row("c - 0 +3 2023-12-31", &[("book_value_per_share", "21")]);
        check(&[a.clone(), older.clone(), corrected.clone()], &[], "3 2024-03-31 21 2023-12-31");
        let found = merged(&[a.clone(), older.clone(), corrected], &[]).unwrap();
        assert_eq!(found.used, [0, 2, 1]);
        // A correction of one figure keeps the other figures of its date.
        let whole = row("a - 0 +1 2024-03-31", &[("eps_ttm", "3"), ("book_value_per_share", "22")]);
        check(&[whole, b.clone(), older.clone()], &[], "4 2024-03-31 22 2024-03-31");
        // Figures in another currency do not fill a record of another source.
        let euros = |words: &str| row(words, &[("book_value_per_share", "20"), ("reported_currency", "EUR")]);
        let dollars = row("a - 0 +1 2024-03-31", &[("eps_ttm", "3"), ("reported_currency", "USD")]);
        check(&[dollars.clone(), euros("b - 0 +2 2023-12-31")], &[], "3 2024-03-31 - 2024-03-31");
        check(&[dollars, euros("a - 0 +2 2023-12-31")], &[], "3 2024-03-31 20 2023-12-31");
        check(&[a.clone(), euros("b - 0 +2 2023-12-31")], &[], "3 2024-03-31 20 2023-12-31");
        let beta = row("c - 0 +1 2023-09-30", &[("beta", "1.1"), ("reported_currency", "USD")]);
        let found = merged(&[a.clone(), euros("b - 0 +2 2023-12-31"), beta], &[]).unwrap();
        assert_eq!((found.used, found.figures.beta), (vec![0, 1], None));
        // The newest report of all sources is used, even if the policy prefers another source.
        check(&[a, row("b - 0 +0 2024-04-30", &[("eps_ttm", "5")])], &[], "5 2024-04-30 - 2024-03-31");
    }

    #[test]
    fn manual_figures_override_unless_they_are_older() {
        let a = row("a - 0 +1 2024-03-31", &[("eps_ttm", "3"), ("book_value_per_share", "20")]);
        let manual = |day: &str| row(&format!("manual - 0 +1 {day}"), &[("eps_ttm", "9")]);
        check(&[a.clone(), manual("2024-04-15")], &[], "9 2024-04-15 20 2024-03-31");
        check(&[a.clone(), manual("2024-03-31")], &[], "9 2024-03-31 20 2024-03-31");
        check(&[a.clone(), manual("2024-03-30")], &[], "3 2024-03-31 20 2024-03-31");
        check(
            &[a, manual("2024-03-31"), row("manual - 0 +1 2024-05-01", &[("eps_ttm", "8")])],
            &[],
            "8 2024-05-01 20 2024-03-31",
        );
        check(&[manual("2024-03-30")], &[], "9 2024-03-30 - 2024-03-30");
    }

    #[test]
    fn of_one_report_the_greater_version_counts() {
        let eps = |words: &str, eps: &str| row(words, &[("eps_ttm", eps)]);
        let first = eps("a - 0 +1 2024-03-31", "3");
        check(&[first.clone(), eps("a - 0 +2 2024-03-31", "4")], &[], "4 2024-03-31 - 2024-03-31");
        check(
            &[eps("a - 1 +1 2024-03-31", "5"), eps("a - 0 +2 2024-03-31", "4")],
            &[],
            "5 2024-03-31 - 2024-03-31",
        );
        check(&[first.clone(), row("a - 0 -2 2024-03-31", &[])], &[], "none");
        check(&[first.clone(), row("a - 0 -2 2024-03-30", &[])], &[], "3 2024-03-31 - 2024-03-31");
        check(&[first, row("b - 0 -2 2024-03-31", &[])], &[], "3 2024-03-31 - 2024-03-31");
        // An id is one report, even with another date. The retraction of its newest revision removes the report.
        check(
            &[eps("a x 0 +1 2024-03-31", "3"), eps("a x 1 +1 2023-12-31", "2")],
            &[],
            "2 2023-12-31 - 2023-12-31",
        );
        check(&[eps("a x 0 +3 2024-03-31", "3"), row("a x 0 -2 2023-12-31", &[])], &[], "none");
        check(
            &[eps("a x 0 +1 2024-03-31", "3"), eps("a y 0 +2 2023-12-31", "2")],
            &[],
            "3 2024-03-31 - 2023-12-31",
        );
        check(
            &[eps("a x 0 +1 2024-03-31", "3"), eps("a y 0 +2 2024-03-31", "2")],
            &[],
            "2 2024-03-31 - 2024-03-31",
        );
        check(
            &[eps("a x 0 +1 2024-03-31", "3"), eps("b x 0 +0 2024-03-31", "2")],
            &[],
            "3 2024-03-31 - 2024-03-31",
        );
    }
}
