use chrono::{DateTime, Datelike, NaiveDate};
use proptest::prelude::*;

use super::*;
use crate::day::{date_of, day_number};
use crate::event::Action;

fn any_bars() -> impl Strategy<Value = Bars> {
    let price = prop_oneof![4 => 1i64..1_000_000_000, 1 => Just(MISSING)];
    let bar = (
        1i32..40,
        price.clone(),
        price.clone(),
        price.clone(),
        1i64..1_000_000_000,
        price.clone(),
        price.clone(),
        price,
        0i64..3,
        (0u64..3, prop::bool::weighted(0.2)),
    );
    (0u32..6, prop::collection::vec(bar, 0..30)).prop_map(|(scale, rows)| {
        let mut bars = Bars { scale, ..Bars::default() };
        let mut dictionary = VersionDictionary::default();
        for (day, open, high, low, close, volume, vwap, trade_count, revision, (line, retracted)) in rows {
            let version = BarVersion { revision, line, retracted, ..BarVersion::UNKNOWN };
            let version = dictionary.index(&mut bars.versions, &version).unwrap();
            bars.push(Bar { day: 730_000 + day, open, high, low, close, volume, vwap, trade_count }, version);
        }
        bars
    })
}

fn sorted(bars: Bars) -> Bars {
    bars.merge(Bars::default()).unwrap()
}

proptest! {
    #[test]
    fn bars_that_follow_each_other_are_merged_as_others_are(
        bars in any_bars(), spare in 0usize..3, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        scales in prop::collection::vec(0u32..3, 4),
    ) {
        let mut bars = sorted(bars);
        // Adds unused versions, and reverses the order of first use.
        bars.versions.extend(std::iter::repeat_n(BarVersion { line: 77, ..BarVersion::UNKNOWN }, spare));
        bars.versions.reverse();
        let last = u16::try_from(bars.versions.len().saturating_sub(1)).unwrap();
        bars.version.iter_mut().for_each(|version| *version = last - *version);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bars.len() + 1)).chain([0, bars.len()]).collect();
        cuts.sort_unstable();
        let parts = cuts.windows(2).zip(scales).map(|(cut, places)| {
            let mut part = bars.slice(cut[0]..cut[1]);
            part.rescale(part.scale + places).unwrap();
            part
        });
        prop_assert_eq!(Bars::merge_all(parts.collect()).unwrap(), bars.merge(Bars::default()).unwrap());
    }

    #[test]
    fn a_merge_loses_no_version_of_a_day(parts in prop::collection::vec(any_bars(), 0..4)) {
        // Each set is a record batch, whose versions differ from those of other batches.
        let batch = |(number, mut bars): (usize, Bars)| {
            for version in &mut bars.versions {
                version.frame = [u8::try_from(number).unwrap(); 16];
            }
            bars
        };
        let parts: Vec<Bars> = parts.into_iter().enumerate().map(batch).collect();
        let days = |sets: &[Bars]| {
            let of_set = |bars: &Bars| (0..bars.len()).map(|index| (bars.day[index], bars.version_of(index).frame)).collect::<Vec<_>>();
            sets.iter().flat_map(of_set).collect::<std::collections::BTreeSet<_>>()
        };
        let (merged, superseded) = Bars::merge_keeping_superseded(parts.clone()).unwrap();
        prop_assert_eq!(&merged, &Bars::merge_all(parts.clone()).unwrap());
        prop_assert_eq!(days(&[&[merged][..], &superseded].concat()), days(&parts));
    }

    #[test]
    fn years_part_bars_and_lose_none(bars in any_bars(), stretch in 1i32..400) {
        let mut bars = sorted(bars);
        bars.day.iter_mut().for_each(|day| *day = 730_000 + (*day - 730_000) * stretch);
        let years = bars.by_year();
        for (number, (year, part)) in years.iter().enumerate() {
            prop_assert!(part.day.iter().all(|day| date_of(*day).year() == *year));
            prop_assert!(years[..number].iter().all(|(other, _)| other != year));
            let own: Vec<usize> = (0..bars.len()).filter(|i| date_of(bars.day[*i]).year() == *year).collect();
            let all = |bars: &Bars, indexes: &[usize]| -> Vec<(Bar, BarVersion)> {
                indexes.iter().map(|i| (bars.bar(*i), bars.version_of(*i).clone())).collect()
            };
            prop_assert_eq!(all(part, &(0..part.len()).collect::<Vec<_>>()), all(&bars, &own));
        }
        prop_assert_eq!(years.iter().map(|(_, part)| part.len()).sum::<usize>(), bars.len());
    }

    #[test]
    fn later_bars_are_appended_as_they_would_be_merged(bars in any_bars(), part in 0usize..30) {
        let whole = sorted(bars);
        let (first, last) = (whole.slice(0..part.min(whole.len())), whole.slice(part.min(whole.len())..whole.len()));
        let mut appended = first.clone().append(last.clone()).unwrap();
        appended.canonicalize();
        let merged = first.merge(last).unwrap();
        let told = |bars: &Bars| -> Vec<(Bar, BarVersion)> {
            (0..bars.len()).map(|index| (bars.bar(index), bars.version_of(index).clone())).collect()
        };
        prop_assert_eq!((appended.scale, told(&appended)), (merged.scale, told(&merged)));
    }

    #[test]
    fn merging_is_idempotent(bars in any_bars()) {
        let once = sorted(bars);
        prop_assert_eq!(once.clone().merge(once.clone()).unwrap(), once);
    }

    #[test]
    fn merging_is_associative(a in any_bars(), b in any_bars(), c in any_bars()) {
        let left = a.clone().merge(b.clone()).unwrap().merge(c.clone()).unwrap();
        let right = a.merge(b.merge(c).unwrap()).unwrap();
        prop_assert_eq!(left, right);
    }

    #[test]
    fn the_greater_version_wins_in_any_order(a in any_bars(), b in any_bars()) {
        let (a, mut b) = (sorted(a), sorted(b));
        b.versions.iter_mut().for_each(|version| version.revision += 10);
        let (forth, back) = (a.clone().merge(b.clone()).unwrap(), b.clone().merge(a).unwrap());
        prop_assert_eq!(&forth, &back);
        for (index, day) in forth.day.iter().enumerate() {
            prop_assert!(!b.day.contains(day) || forth.version_of(index).revision >= 10);
        }
    }
}

fn bar(day: i32, close: i64) -> Bar {
    let (open, high, low, volume, vwap, trade_count) = (MISSING, MISSING, MISSING, 100, MISSING, MISSING);
    Bar { day, open, high, low, close, volume, vwap, trade_count }
}

/// Builds bars from (day, close) pairs. All bars have the same version.
fn bars(scale: u32, rows: &[(i32, i64)]) -> Bars {
    let mut bars = Bars { scale, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    rows.iter().for_each(|(day, close)| bars.push(bar(*day, *close), 0));
    bars
}

fn closes(bars: &Bars) -> Vec<(i32, String)> {
    let close = |index: usize| bars.decimal(bars.close[index]).unwrap().normalize().to_string();
    (0..bars.len()).map(|index| (bars.day[index], close(index))).collect()
}

fn expected(rows: &[(i32, &str)]) -> Vec<(i32, String)> {
    rows.iter().map(|(day, close)| (*day, (*close).to_owned())).collect()
}

#[test]
fn an_empty_table_has_no_bar_and_a_missing_value_no_decimal() {
    assert!(Bars::default().is_empty() && Bars::default().last_live_day().is_none());
    let one = bars(2, &[(730_000, 4_015)]);
    assert!(!one.is_empty());
    assert_eq!((one.decimal(4_015).unwrap().to_string(), one.decimal(MISSING)), ("40.15".to_owned(), None));
}

#[test]
fn the_newest_day_is_the_newest_that_was_not_withdrawn() {
    let mut some = bars(2, &[(730_001, 100), (730_002, 200), (730_003, 300)]);
    assert_eq!(some.last_live_day(), Some(730_003));
    some.versions.push(BarVersion { retracted: true, ..BarVersion::UNKNOWN });
    some.version[2] = 1;
    assert_eq!(some.last_live_day(), Some(730_002));
    some.version = vec![1; 3];
    assert_eq!(some.last_live_day(), None);
}

#[test]
fn a_finer_scale_changes_no_price() {
    let mut some = bars(2, &[(730_001, 4_015), (730_002, 1)]);
    (some.open[0], some.high[0], some.low[0]) = (4_000, 4_100, 3_900);
    some.vwap = vec![4_020, MISSING].into();
    some.rescale(4).unwrap();
    assert_eq!(closes(&some), expected(&[(730_001, "40.15"), (730_002, "0.01")]));
    assert_eq!((some.scale, some.open[0], some.high[0], some.low[0]), (4, 400_000, 410_000, 390_000));
    assert_eq!((some.open[1], &some.vwap), (MISSING, &vec![402_000, MISSING].into()));
    // Rescaling to fewer decimal places has no effect.
    some.rescale(1).unwrap();
    assert_eq!(some.scale, 4);
    assert!(matches!(some.rescale(30), Err(BarsError::ScaleOverflow)));
    assert!(matches!(bars(0, &[(730_001, i64::MAX / 9)]).rescale(1), Err(BarsError::ScaleOverflow)));
}

#[test]
fn decimal_places_that_no_price_needs_are_dropped() {
    let check = |scale, prices: &[i64], expected: (u32, &[i64])| {
        let rows: Vec<(i32, i64)> = (730_001..).zip(prices.iter().copied()).collect();
        let mut some = bars(scale, &rows);
        some.canonicalize();
        assert_eq!((some.scale, &some.close[..]), expected, "{prices:?}");
    };
    check(4, &[401_500, 400_000], (2, &[4_015, 4_000]));
    check(2, &[4_000, 5_000], (0, &[40, 50]));
    check(0, &[4_000, 5_000], (0, &[4_000, 5_000]));
    check(3, &[4_001, 5_000], (3, &[4_001, 5_000]));
    // If one price needs a decimal place, all prices keep this decimal place.
    let mut some = bars(2, &[(730_001, 4_000)]);
    (some.high[0], some.vwap, some.trade_count) = (4_010, vec![MISSING].into(), vec![MISSING].into());
    some.canonicalize();
    assert_eq!((some.scale, some.close[0], some.high[0], some.open[0]), (1, 400, 401, MISSING));
    assert_eq!([some.vwap, some.trade_count], [BarColumn::absent(1), BarColumn::absent(1)]);
    let mut some = bars(2, &[(730_001, 4_000)]);
    (some.vwap, some.trade_count) = (vec![4_005].into(), vec![7].into());
    some.canonicalize();
    assert_eq!((some.scale, some.vwap[0], some.trade_count[0]), (2, 4_005, 7));
}

#[test]
fn a_late_average_price_leaves_the_bars_before_it_without_one() {
    let mut some = bars(2, &[(730_001, 100), (730_002, 200)]);
    assert_eq!(some.vwap, BarColumn::absent(2));
    some.push(Bar { vwap: 290, trade_count: 12, ..bar(730_003, 300) }, 0);
    some.push(bar(730_004, 400), 0);
    assert_eq!(some.vwap, vec![MISSING, MISSING, 290, MISSING].into());
    assert_eq!(some.trade_count, vec![MISSING, MISSING, 12, MISSING].into());
    assert_eq!((some.bar(2).vwap, some.bar(3).trade_count, some.bar(0).vwap), (290, MISSING, MISSING));
    let last = some.slice(2..4);
    assert_eq!((last.scale, closes(&last)), (2, expected(&[(730_003, "3"), (730_004, "4")])));
    assert_eq!((last.vwap, last.versions.len()), (vec![290, MISSING].into(), 1));
    // If only one of two appended sets has a `vwap` column, the values of the other set are absent in this column.
    let plain = bars(2, &[(730_001, 100), (730_002, 200)]);
    let all = plain.clone().append(some.slice(2..3)).unwrap();
    assert_eq!((&all.vwap, all.trade_count.len()), (&vec![MISSING, MISSING, 290].into(), 3));
    let all = all.append(bars(2, &[(730_005, 500)])).unwrap();
    assert_eq!(all.vwap, vec![MISSING, MISSING, 290, MISSING].into());
}

#[test]
fn appending_keeps_order_scale_and_versions() {
    let newer = BarVersion { revision: 1, ..BarVersion::UNKNOWN };
    let first = bars(1, &[(730_001, 11), (730_002, 12)]);
    let mut last = bars(2, &[(730_003, 1_305)]);
    last.versions = vec![newer.clone()];
    let all = first.clone().append(last.clone()).unwrap();
    assert_eq!(closes(&all), expected(&[(730_001, "1.1"), (730_002, "1.2"), (730_003, "13.05")]));
    assert_eq!((all.version_of(0).revision, all.version_of(2).revision), (0, 1));
    assert_eq!(Bars::default().append(first.clone()).unwrap(), first);
    assert_eq!(first.clone().append(Bars::default()).unwrap(), first);
    // Appending an empty set changes nothing. The scale does not shrink, even if all prices end with zeros.
    let zeros = bars(3, &[(730_001, 1_100), (730_002, 1_200)]);
    assert_eq!(zeros.clone().append(Bars::default()).unwrap(), zeros);
    assert_eq!(bars(4, &[]).append(zeros.clone()).unwrap(), zeros);
    // Bars of the same day are merged; the greater revision wins.
    let mut again = bars(2, &[(730_002, 1_250), (730_003, 1_300)]);
    again.versions = vec![newer];
    let merged = first.append(again).unwrap();
    assert_eq!(closes(&merged), expected(&[(730_001, "1.1"), (730_002, "12.5"), (730_003, "13")]));
}

#[test]
fn of_one_version_the_later_row_of_a_day_counts() {
    let twice = bars(2, &[(730_002, 100), (730_001, 50), (730_002, 200)]);
    let merged = twice.merge(Bars::default()).unwrap();
    assert_eq!(closes(&merged), expected(&[(730_001, "0.5"), (730_002, "2")]));
}

#[test]
fn versions_rank_by_revision_then_time_then_withdrawal_then_line_then_frame() {
    let at = |second: i64| DateTime::from_timestamp(second, 0).unwrap();
    let put = BarVersion::new(1, Action::Put, at(100), Some(730_000));
    assert_eq!(
        (put.revision, put.retracted, put.observation_time(), put.basis_day),
        (1, false, at(100), Some(730_000))
    );
    let withdrawn = BarVersion::new(1, Action::Retract, at(100), None);
    assert!(withdrawn.retracted);
    let in_order = [
        BarVersion::new(0, Action::Retract, at(900), None),
        BarVersion::new(1, Action::Retract, at(99), None),
        put.clone(),
        BarVersion { line: 1, ..put.clone() },
        BarVersion { line: 1, frame: [7; 16], ..put },
        withdrawn,
        BarVersion::new(1, Action::Put, at(101), None),
    ];
    for pair in in_order.windows(2) {
        assert!(pair[0].rank() < pair[1].rank(), "{pair:?}");
    }
}

#[test]
fn days_beyond_the_calendar_are_its_ends() {
    assert_eq!(day_number("0001-01-01".parse().unwrap()), 1);
    assert_eq!(date_of(day_number("2024-02-29".parse().unwrap())).to_string(), "2024-02-29");
    assert_eq!((date_of(i32::MAX), date_of(i32::MIN)), (NaiveDate::MAX, NaiveDate::MIN));
}

#[test]
fn years_begin_and_end_with_the_calendar() {
    let day = |text: &str| day_number(text.parse().unwrap());
    let days = ["2023-12-31", "2024-01-01", "2024-12-31", "2025-01-01", "2025-12-31", "2026-01-01"].map(day);
    let rows: Vec<(i32, i64)> = days.iter().map(|day| (*day, 100)).collect();
    let some = bars(2, &rows);
    assert_eq!(some.years(), [(2023, 0..1), (2024, 1..3), (2025, 3..5), (2026, 5..6)]);
    let by_year = some.by_year();
    assert_eq!(
        by_year.iter().map(|(year, part)| (*year, part.len())).collect::<Vec<_>>(),
        [(2023, 1), (2024, 2), (2025, 2), (2026, 1)]
    );
    // The bars of a year are one range of indexes, even if the first bar is late in the year.
    let midyear = ["2023-06-29", "2023-06-30", "2023-12-29", "2024-12-30", "2024-12-31"].map(day);
    let some = bars(2, &midyear.map(|day| (day, 100)));
    assert_eq!(some.years(), [(2023, 0..3), (2024, 3..5)]);
    // Each day outside the calendar is a separate range.
    assert_eq!(bars(2, &[(i32::MAX, 1), (i32::MAX, 1), (days[0], 1)]).years().len(), 3);
}
