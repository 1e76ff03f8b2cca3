use chrono::Datelike;
use proptest::prelude::*;

use super::*;
use crate::day::date_of;

fn bars() -> impl Strategy<Value = Bars> {
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
        bars in bars(), spare in 0usize..3, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
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
    fn a_merge_loses_no_version_of_a_day(parts in prop::collection::vec(bars(), 0..4)) {
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
    fn years_part_bars_and_lose_none(bars in bars(), stretch in 1i32..400) {
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
    fn later_bars_are_appended_as_they_would_be_merged(bars in bars(), part in 0usize..30) {
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
    fn merging_is_idempotent(bars in bars()) {
        let once = sorted(bars);
        prop_assert_eq!(once.clone().merge(once.clone()).unwrap(), once);
    }

    #[test]
    fn merging_is_associative(a in bars(), b in bars(), c in bars()) {
        let left = a.clone().merge(b.clone()).unwrap().merge(c.clone()).unwrap();
        let right = a.merge(b.merge(c).unwrap()).unwrap();
        prop_assert_eq!(left, right);
    }

    #[test]
    fn the_greater_version_wins_in_any_order(a in bars(), b in bars()) {
        let (a, mut b) = (sorted(a), sorted(b));
        b.versions.iter_mut().for_each(|version| version.revision += 10);
        let (forth, back) = (a.clone().merge(b.clone()).unwrap(), b.clone().merge(a).unwrap());
        prop_assert_eq!(&forth, &back);
        for (index, day) in forth.day.iter().enumerate() {
            prop_assert!(!b.day.contains(day) || forth.version_of(index).revision >= 10);
        }
    }
}
