//! Tests of splits of several sources.

use super::*;

/// A history with a price that halves on 2024-06-10.
fn halved(splits: &[&str]) -> History {
    let day = |n: u64| (date("2024-06-03") + Days::new(n)).to_string();
    let days: Vec<(String, i64)> =
        (0..12).filter(|n| n % 7 < 5).map(|n| (day(n), if n < 7 { 100 } else { 50 })).collect();
    let closes: Vec<(&str, i64)> = days.iter().map(|(day, close)| (day.as_str(), *close)).collect();
    let splits = (1..).zip(splits).map(|(line, text)| split(line, text)).collect();
    History { splits, ..history(&[], &closes) }
}

#[test]
fn splits_are_covered_within_five_sessions() {
    let check = |splits: &[&str], expected: &[&str], expected_unused: &[&str]| {
        let mut history = halved(splits);
        for _ in splits {
            history.splits.rotate_left(1);
            let derived = at("2024-06-14", &history, &SourcePolicy::default());
            let served = derived.splits.iter().filter(|row| row.status.as_str() != "cancelled");
            let served: Vec<String> = served.map(|row| format!("{} {}", row.ex_date, row.text)).collect();
            assert_eq!(served, texts(expected), "{splits:?}");
            assert_eq!(unused(&history, &SourcePolicy::default()), texts(expected_unused), "{splits:?}");
        }
    };
    let real = "a +1 2024-06-10 1 2";
    check(&[real], &["2024-06-10 2:1"], &[]);
    check(&[real, "b +2 2024-06-10 100 200"], &["2024-06-10 200:100"], &["a 2024-06-10 covered by b"]);
    // The later source has the payable date. The price moved before it, so the row is quarantined and covers nothing.
    check(&[real, "b +2 2024-06-11 1 2"], &["2024-06-10 2:1"], &["b 2024-06-11 split_denied"]);
    check(&[real, "b +2 2024-06-10 1 500"], &["2024-06-10 2:1"], &["b 2024-06-10 split_denied"]);
    check(&[real, "b +2 2024-06-10 1 1"], &["2024-06-10 2:1"], &["b 2024-06-10 no_share_change"]);
    check(
        &[real, "b +2 2024-06-07 1 2", "b -3 2024-06-07 1 2"],
        &["2024-06-10 2:1"],
        &["b 2024-06-07 cancelled", "b 2024-06-07 cancelled"],
    );
    // Five sessions are a week. A split of another week stays.
    check(
        &["a +1 2023-06-05 1 2", "b +2 2023-06-12 1 2"],
        &["2023-06-12 2:1"],
        &["a 2023-06-05 covered by b"],
    );
    check(&["a +1 2023-06-05 1 2", "b +2 2023-06-13 1 2"], &["2023-06-05 2:1", "2023-06-13 2:1"], &[]);
}
