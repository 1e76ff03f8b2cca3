use market::bars::{Bar, BarColumn, BarVersion, Bars, BarsError, MISSING, SupersededBars, VersionDictionary};
use proptest::prelude::*;

use super::sessions::FORMAT_VERSION;
use super::*;
use crate::digest;

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

proptest! {
    #[test]
    fn packing_loses_nothing(bars in any_bars()) {
        prop_assert_eq!(PackedBars::pack(&bars).unwrap().unpack().unwrap(), bars);
    }

    #[test]
    fn days_of_weeks_with_holidays_and_weekend_sessions_come_back(
        first in prop_oneof![4 => 720_000i32..740_000, 1 => Just(i32::MAX - 200), 1 => Just(i32::MIN)],
        missing in prop::collection::btree_set(0i32..200, 0..30),
        weekends in prop::collection::btree_set(0i32..200, 0..4),
    ) {
        let is_weekend = |day: i32| matches!(day.rem_euclid(7), 0 | 6);
        let is_session = |day: &i32| weekends.contains(day) || !(is_weekend(first + day) || missing.contains(day));
        let day: Vec<i32> = (0..200).filter(is_session).map(|day| first + day).collect();
        let bars = Bars { close: vec![1; day.len()], day, ..Bars::default() };
        let [days, ..] = pack_closes(&bars).unwrap();
        prop_assert_eq!(unpack_days(&days).unwrap(), bars.day);
    }

    #[test]
    fn closes_are_read_alone(bars in any_bars()) {
        let (packed, absent) = (PackedBars::pack(&bars).unwrap(), BarColumn::absent(bars.len()));
        let closes = unpack_closes(&packed.days, &packed.close, &packed.versions, 0).unwrap();
        prop_assert_eq!((&closes.day, &closes.close, &closes.version), (&bars.day, &bars.close, &bars.version));
        prop_assert_eq!((closes.scale, &closes.versions), (bars.scale, &bars.versions));
        prop_assert!([&closes.open, &closes.high, &closes.low, &closes.volume].iter().all(|c| **c == absent));
    }

    #[test]
    fn superseded_bars_come_back(bars in any_bars(), seed in any::<u64>()) {
        let versions = bars.versions.len().max(1) as u64;
        let original = |index: u64| (!(seed.wrapping_mul(index + 7)).is_multiple_of(3)).then(|| ((seed ^ index) % versions) as u16);
        let originals = (0..bars.len() as u64).map(original).collect();
        let superseded = SupersededBars { bars, originals };
        let bytes = pack_superseded(&superseded).unwrap();
        prop_assert_eq!(unpack_superseded(&bytes).unwrap(), superseded);
        for end in 0..bytes.len() {
            // Without the versions, the bytes are those of plain bars.
            let cut = unpack_superseded(&bytes[..end]);
            prop_assert!(cut.is_err() || cut.unwrap().originals.iter().all(Option::is_none));
        }
    }

    #[test]
    fn damaged_superseded_bars_are_an_error_and_never_a_panic(
        bars in any_bars(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let originals = vec![None; bars.len()];
        let mut bytes = pack_superseded(&SupersededBars { bars, originals }).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = unpack_superseded(&bytes);
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let packed = PackedBars { days: bytes.clone(), close: bytes.clone(), range: bytes.clone(), volume: bytes.clone(), extra: bytes.clone(), versions: bytes };
        let _ = packed.unpack();
    }
}

fn bar(day: i32, close: i64) -> Bar {
    let (open, high, low, volume, vwap, trade_count) = (MISSING, MISSING, MISSING, 100, MISSING, MISSING);
    Bar { day, open, high, low, close, volume, vwap, trade_count }
}

/// Each pair of `rows` is a day number and a close.
fn bars(scale: u32, rows: &[(i32, i64)]) -> Bars {
    let mut bars = Bars { scale, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    rows.iter().for_each(|(day, close)| bars.push(bar(*day, *close), 0));
    bars
}

#[test]
fn packed_columns_have_to_agree() {
    // The bars have highs because an encoded column without values does not show the number of its bars.
    let with_highs = |rows: &[(i32, i64)]| {
        let mut some = bars(2, rows);
        some.high = vec![900; rows.len()].into();
        PackedBars::pack(&some).unwrap()
    };
    let good = with_highs(&[(730_001, 100), (730_002, 200)]);
    let mut full = bars(2, &[(730_001, 100), (730_002, 200)]);
    (full.vwap, full.trade_count) = (vec![100, 200].into(), vec![1, 2].into());
    let full = PackedBars::pack(&full).unwrap();
    let longer = bars(2, &[(730_001, 100), (730_002, 200), (730_003, 300)]);
    let mut with_extra = longer.clone();
    (with_extra.vwap, with_extra.trade_count) = (vec![100, 200, 300].into(), vec![1, 2, 3].into());
    let (longer, with_extra) = (PackedBars::pack(&longer).unwrap(), PackedBars::pack(&with_extra).unwrap());
    assert!(good.unpack().is_ok() && full.unpack().is_ok());
    for damaged in [
        PackedBars { days: longer.days.clone(), ..good.clone() },
        PackedBars { close: longer.close.clone(), ..good.clone() },
        PackedBars { volume: longer.volume.clone(), ..good.clone() },
        PackedBars { range: with_highs(&[(730_001, 100)]).range, ..good.clone() },
        PackedBars {
            versions: PackedBars::pack(&bars(2, &[(730_001, 100)])).unwrap().versions,
            ..good.clone()
        },
        PackedBars { extra: with_extra.extra, ..full },
    ] {
        let found = damaged.unpack();
        assert!(matches!(found, Err(PackedBarsError::Damaged("columns differ in length"))), "{found:?}");
    }
    // If packed bars have no versions, each bar gets an unknown version. If a bar has the index of a version that does
    // not exist, unpacking fails.
    let read = PackedBars { versions: Vec::new(), ..good.clone() }.unpack().unwrap();
    assert_eq!((&read.version[..], &read.versions[..]), (&[0, 0][..], &[BarVersion::UNKNOWN][..]));
    let mut unknown = bars(2, &[(730_001, 100), (730_002, 200)]);
    unknown.version[1] = 1;
    let found = PackedBars::pack(&unknown).unwrap().unpack();
    assert!(matches!(found, Err(PackedBarsError::Damaged("a bar names an unknown version"))), "{found:?}");
    assert!(PackedBars::pack(&bars(18, &[(730_001, 100)])).unwrap().unpack().is_ok());
    assert!(PackedBars::pack(&bars(19, &[(730_001, 100)])).unwrap().unpack().is_err());
}

#[test]
fn columns_of_a_newer_form_are_refused() {
    let mut newer = PackedBars::pack(&bars(2, &[(730_001, 4_015)])).unwrap();
    newer.days[0] = FORMAT_VERSION + 1;
    let found = newer.unpack();
    assert!(
        matches!(found, Err(PackedBarsError::UnknownVersion(version)) if version == FORMAT_VERSION + 1),
        "{found:?}"
    );
    assert!(unpack_days(&newer.days).is_err());
    assert!(unpack_closes(&newer.days, &newer.close, &[], 0).is_err());
    assert!(unpack_days(&[]).is_err());
}

#[test]
fn a_year_of_sessions_takes_eight_bytes_a_bar() {
    let weekdays = (730_121..730_486).filter(|day| day % 7 != 0 && day % 7 != 6);
    let mut some = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    for (day, step) in weekdays.zip(0i64..) {
        let close = 10_000 + (step * 7_919) % 400 - 200;
        let open = close + (step * 104_729) % 300 - 150;
        let (high, low) = (open.max(close) + step % 90, open.min(close) - step % 70);
        let volume = 20_000_000 + (step * 15_485_863) % 30_000_000;
        some.push(Bar { day, open, high, low, close, volume, vwap: MISSING, trade_count: MISSING }, 0);
    }
    let packed = PackedBars::pack(&some).unwrap();
    let bytes = [&packed.days, &packed.close, &packed.range, &packed.volume, &packed.extra].map(Vec::len);
    assert!(bytes.iter().sum::<usize>() < 8 * some.len(), "{bytes:?} of {}", some.len());
    assert_eq!(packed.unpack().unwrap(), some);
}

#[test]
fn prices_whose_difference_is_none_are_refused() {
    let mut some = bars(0, &[(730_001, i64::MAX), (730_002, -2)]);
    assert_eq!(PackedBars::pack(&some).unwrap().unpack().unwrap(), some);
    some.close[1] = -1;
    assert!(matches!(PackedBars::pack(&some), Err(PackedBarsError::Bars(BarsError::ScaleOverflow))));
}

#[test]
fn days_are_read_alone() {
    let packed = PackedBars::pack(&bars(2, &[(730_001, 100), (730_005, 200), (730_002, 300)])).unwrap();
    assert_eq!(unpack_days(&packed.days).unwrap(), [730_001, 730_005, 730_002]);
    assert!(unpack_days(&[255, 255]).is_err());
}

#[test]
fn a_digest_tells_every_column_but_the_versions() {
    let of = |change: &dyn Fn(&mut Bars)| {
        let mut some = bars(2, &[(730_001, 100), (730_002, 200)]);
        change(&mut some);
        PackedBars::pack(&some).unwrap().digest()
    };
    let plain = of(&|_| {});
    assert_eq!(plain, of(&|_| {}));
    assert_eq!(plain, of(&|some| some.versions[0].line = 7));
    let changed = [
        of(&|some| some.day[1] += 1),
        of(&|some| some.scale = 3),
        of(&|some| some.close[1] += 1),
        of(&|some| some.low[0] = 90),
        of(&|some| some.volume[0] += 1),
        of(&|some| some.vwap = vec![100, 101].into()),
    ];
    let distinct: std::collections::BTreeSet<i64> = changed.iter().copied().chain([plain]).collect();
    assert_eq!(distinct.len(), changed.len() + 1);
    // The digest depends on the boundaries of the parts.
    assert_ne!(digest([&b"ab"[..], b"c"]), digest([&b"a"[..], b"bc"]));
}
