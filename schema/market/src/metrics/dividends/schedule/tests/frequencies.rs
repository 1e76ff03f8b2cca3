//! Tests of the thresholds at which gaps, amounts and vendor tags decide the payment frequency around a row.

use super::*;
use crate::event::Frequency;
use crate::metrics::dividends::schedule::local_frequencies;

/// Repeats values: `[(91, 8)]` becomes eight times 91.
fn runs<T: Copy>(runs: &[(T, usize)]) -> Vec<T> {
    runs.iter().flat_map(|(value, count)| vec![*value; *count]).collect()
}

fn frequencies(gaps: &[(i64, usize)]) -> Vec<Option<i32>> {
    local_frequencies(&spaced(&runs(gaps)), &Rules::DEFAULT.schedule)
}

#[test]
fn a_gap_is_of_a_frequency_from_0_6_to_1_4_periods() {
    for (shortest, longest, expected) in [
        (2, 17, None),
        (18, 18, None),
        // For payments every four weeks or more often, the number of payments a year is `None`.
        (19, 28, None),
        (29, 42, Some(12)),
        (43, 54, Some(6)),
        (55, 127, Some(4)),
        (128, 255, Some(2)),
        (256, 511, Some(1)),
        (512, 550, None),
    ] {
        for days in shortest..=longest {
            assert_eq!(frequencies(&[(days, 8)]), vec![expected; 9], "{days} days");
        }
    }
}

#[test]
fn a_change_of_the_frequency_has_three_gaps_of_a_shorter_period_or_two_of_a_longer_one() {
    let after = |gap: i64, count: usize| frequencies(&[(91, 8), (gap, count)]);
    assert_eq!(after(30, 2), vec![Some(4); 11]);
    assert_eq!(after(30, 3), runs(&[(Some(4), 9), (Some(12), 3)]));
    assert_eq!(after(182, 1), vec![Some(4); 10]);
    assert_eq!(after(182, 2), runs(&[(Some(4), 9), (Some(2), 2)]));
    // Between two quarterly periods, a change of frequency needs six monthly gaps or three half-yearly gaps.
    let between = |gap: i64, count: usize| frequencies(&[(91, 8), (gap, count), (91, 8)]);
    assert_eq!(between(30, 5), vec![Some(4); 22]);
    assert_eq!(between(30, 6), runs(&[(Some(4), 9), (Some(12), 6), (Some(4), 8)]));
    assert_eq!(between(182, 2), vec![Some(4); 19]);
    assert_eq!(between(182, 3), runs(&[(Some(4), 9), (Some(2), 3), (Some(4), 8)]));
    // Three gaps of at most 17 days are a change to weekly or biweekly payments. Three gaps of 18 days are not.
    for days in [7, 17] {
        assert_eq!(after(days, 2), vec![Some(4); 11]);
        assert_eq!(after(days, 3), runs(&[(Some(4), 8), (None, 4)]));
    }
    assert_eq!(after(18, 3), vec![Some(4); 12]);
    // Gaps before a pause do not affect the frequency after the pause. A single monthly gap is then enough.
    assert_eq!(frequencies(&[(91, 4), (551, 1), (30, 1)]), runs(&[(Some(4), 5), (Some(12), 2)]));
}

#[test]
fn irregular_gaps_are_half_extra_or_a_quarter_missing() {
    assert_eq!(frequencies(&[(91, 3), (20, 2)]), vec![Some(4); 6]);
    assert_eq!(frequencies(&[(91, 2), (20, 2)]), vec![None; 5]);
    assert_eq!(frequencies(&[(91, 3), (182, 1)]), vec![Some(4); 5]);
    assert_eq!(frequencies(&[(91, 2), (182, 1)]), vec![None; 4]);
}

#[test]
fn single_pairs_of_gaps_that_sum_to_a_year_are_no_halves() {
    // Two of four pairs sum to a year, then three of five.
    assert_eq!(frequencies(&[(30, 1), (200, 1), (75, 1), (310, 1), (20, 1)]), [None; 6]);
    assert_eq!(frequencies(&[(30, 1), (320, 1), (75, 1), (310, 1), (20, 1), (30, 1)]), [Some(2); 7]);
}

#[test]
fn uneven_halves_sum_to_a_year() {
    let halves = |short: i64, long: i64| {
        frequencies(&[(short, 1), (long, 1), (short, 1), (long, 1), (short, 1), (long, 1)])[0]
    };
    let found = [(70, 259), (70, 260), (70, 330), (70, 331)].map(|(short, long)| halves(short, long));
    assert_eq!(found, [None, Some(2), Some(2), None]);
    // Two uneven gaps that add up to a year are gaps of a half-yearly payer. The longer gap may be the second or the
    // first.
    assert_eq!(frequencies(&[(70, 1), (295, 1)]), [Some(2); 3]);
    assert_eq!(frequencies(&[(295, 1), (70, 1)]), [Some(2); 3]);
    assert_eq!(frequencies(&[(182, 3), (70, 1), (295, 1), (182, 3)]), vec![Some(2); 9]);
}

#[test]
fn four_weeks_are_a_mean_of_at_most_28_7_days() {
    assert_eq!(frequencies(&[(29, 7), (28, 3)]), vec![None; 11]);
    assert_eq!(frequencies(&[(29, 8), (28, 2)]), vec![Some(12); 11]);
    // Ex-dates on third Fridays have gaps of 28 and 35 days. The payer is monthly.
    assert_eq!(frequencies(&[(28, 2), (35, 1), (28, 2), (35, 1), (28, 2)]), vec![Some(12); 9]);
    // The mean excludes the gaps around extra and missing rows. With fewer than six other gaps, the payer counts as
    // monthly.
    assert_eq!(frequencies(&[(30, 6), (5, 1), (30, 6)]), vec![Some(12); 14]);
    assert_eq!(frequencies(&[(28, 6), (56, 1), (28, 6)]), vec![None; 14]);
    assert_eq!(frequencies(&[(28, 5), (56, 1)]), vec![Some(12); 7]);
    // Each run of equal frequencies has its own mean gap.
    let changed = frequencies(&[(91, 6), (28, 6), (91, 6)]);
    assert_eq!(changed[..6], [Some(4); 6]);
    assert_eq!((changed[8], changed[18]), (None, Some(4)));
}

#[test]
fn a_row_between_two_frequencies_belongs_to_the_gap_before_it_or_continues_the_rate() {
    let between = |amounts: &[(Decimal, usize)]| {
        let mut rows = spaced(&runs(&[(365, 4), (91, 8)]));
        rows.iter_mut().zip(runs(amounts)).for_each(|(row, amount)| row.amount = amount);
        local_frequencies(&rows, &Rules::DEFAULT.schedule)[4]
    };
    let own = |own: Decimal| between(&[(dec!(1), 4), (own, 1), (dec!(0.25), 8)]);
    let found = [dec!(1), dec!(0.51), dec!(0.5), dec!(0.25)].map(own);
    assert_eq!(found, [Some(1), Some(1), Some(1), Some(4)]);
    // One wrong amount in a neighbouring row, too large or too small, does not change the result.
    for wrong in [dec!(9), dec!(0.01)] {
        assert_eq!(between(&[(dec!(1), 4), (dec!(0.25), 1), (wrong, 1), (dec!(0.25), 7)]), Some(4));
        assert_eq!(between(&[(dec!(1), 3), (wrong, 1), (dec!(1), 1), (dec!(0.25), 8)]), Some(1));
    }
    // The row between the frequencies is compared only with the two rows before it.
    assert_eq!(between(&[(dec!(1), 4), (dec!(0.5), 1), (dec!(0.2), 2), (dec!(0.5), 6)]), Some(1));
    assert_eq!(between(&[(dec!(0.5), 2), (dec!(2), 2), (dec!(0.5), 1), (dec!(0.25), 8)]), Some(4));
}

#[test]
fn three_and_six_a_year_need_tags() {
    let tagged = |days: i64, tag: Option<Frequency>| {
        let mut rows = spaced(&[days; 6]);
        rows.iter_mut().for_each(|row| row.tag = tag);
        local_frequencies(&rows, &Rules::DEFAULT.schedule)[0]
    };
    assert_eq!([tagged(122, None), tagged(122, Some(Frequency::Triannual))], [Some(4), Some(3)]);
    assert_eq!([tagged(61, None), tagged(61, Some(Frequency::Bimonthly))], [Some(4), Some(6)]);
    assert_eq!(tagged(91, Some(Frequency::Bimonthly)), Some(4));
}

#[test]
fn gaps_overrule_tags_from_four_gaps_on() {
    let row = |day: &str, tag: Frequency| ScheduleRow {
        ex_date: date(day),
        amount: dec!(1),
        tag: Some(tag),
        doubt: None,
        payment_date: None,
    };
    let frequency = |days: &[&str], tag: Frequency| {
        let rows: Vec<ScheduleRow> = days.iter().map(|day| row(day, tag)).collect();
        let found = local_frequencies(&rows, &Rules::DEFAULT.schedule);
        assert!(found.iter().all(|per_year| *per_year == found[0]), "{found:?}");
        found[0]
    };
    let days = ["2019-02-15", "2019-05-15", "2019-08-15", "2019-11-15", "2020-02-15", "2020-05-15"];
    for tag in [Frequency::Monthly, Frequency::SemiAnnual, Frequency::Annual, Frequency::Weekly] {
        let found = [2, 3, 4, 5, 6].map(|count| frequency(&days[..count], tag));
        assert_eq!(found, [None, None, None, Some(4), Some(4)], "{tag}");
    }
    // Both lists contain quarterly payments. In the first list a payment is missing, and the second list has an extra
    // payment.
    let hole = ["2019-02-15", "2019-05-15", "2019-11-15", "2020-02-15", "2020-05-15"];
    let extra = ["2019-02-15", "2019-05-15", "2019-08-15", "2019-09-15", "2019-11-15", "2020-02-15"];
    assert_eq!([frequency(&hole, Frequency::Monthly), frequency(&extra, Frequency::Annual)], [Some(4); 2]);
    // With fewer than four gaps, a correct tag decides.
    assert_eq!(frequency(&hole[..4], Frequency::Quarterly), Some(4));
    assert_eq!(frequency(&hole[..4], Frequency::Unknown), None);
}

#[test]
fn each_tag_counts_once() {
    let tagged = |gaps: &[i64], tagged: &[usize], tag: Frequency| {
        let mut rows = spaced(gaps);
        tagged.iter().for_each(|index| rows[*index].tag = Some(tag));
        local_frequencies(&rows, &Rules::DEFAULT.schedule)
    };
    // With two rows, one contradicting tag makes the payer irregular. With three rows, one contradicting tag does not.
    for tags in [[0].as_slice(), &[1], &[0, 1]] {
        assert_eq!(tagged(&[91], tags, Frequency::Monthly), [None; 2], "{tags:?}");
    }
    for tags in [[0].as_slice(), &[1], &[2]] {
        assert_eq!(tagged(&[91, 91], tags, Frequency::Monthly), [Some(4); 3], "{tags:?}");
    }
    assert_eq!(tagged(&[91, 91, 91], &[1, 2, 3], Frequency::Monthly), [None; 4]);
    // Five weekly gaps among quarterly gaps are a change of frequency only if the tags of these rows say 13 or more
    // payments a year.
    let gaps = runs(&[(91, 8), (7, 5), (91, 8)]);
    let week = |tag: Frequency| tagged(&gaps, &[9, 10, 11, 12, 13], tag)[10];
    assert_eq!([Frequency::Unknown, Frequency::Monthly].map(week), [Some(4); 2]);
    assert_eq!([Frequency::FourWeekly, Frequency::Weekly].map(week), [None; 2]);
}

#[test]
fn a_tag_decides_where_gaps_do_not() {
    let tagged = |days: i64, count: usize, tag: Option<Frequency>| {
        let row = |n: i64| ScheduleRow {
            ex_date: date("2019-02-15") + TimeDelta::days(days * n),
            amount: dec!(1),
            tag,
            doubt: None,
            payment_date: None,
        };
        let rows: Vec<ScheduleRow> = (0..).take(count).map(row).collect();
        local_frequencies(&rows, &Rules::DEFAULT.schedule)[0]
    };
    assert_eq!(tagged(91, 1, None), None);
    assert_eq!(tagged(91, 1, Some(Frequency::Quarterly)), Some(4));
    assert_eq!(tagged(91, 1, Some(Frequency::Monthly)), Some(12));
    assert_eq!(tagged(91, 1, Some(Frequency::Weekly)), None);
    assert_eq!(tagged(91, 6, None), Some(4));
    assert_eq!(tagged(91, 6, Some(Frequency::Monthly)), Some(4), "the gaps overrule the tag");
    assert_eq!(tagged(17, 9, None), None, "frequent");
    assert_eq!(tagged(30, 9, None), Some(12));
    assert_eq!(tagged(28, 9, None), None, "every four weeks");
    assert_eq!(tagged(28, 6, None), Some(12), "too few gaps for four weeks");
    assert_eq!(tagged(28, 7, None), None);
}
