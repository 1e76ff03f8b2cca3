//! Tests of the quarantine of dividends, bars and splits. Each test merges a history, and checks the rows that are
//! derived from it.

use super::*;

/// Rows that are derived from a history with quarterly dividends of these amounts, and with these closes. The last
/// dividend has the ex-date 2024-12-02.
fn quarterly(amounts: &[&str], closes: &[(&str, i64)]) -> DerivedRows {
    let last = date("2024-12-02");
    let count = i64::try_from(amounts.len()).unwrap();
    let rows: Vec<String> = (1..=count)
        .zip(amounts)
        .map(|(n, amount)| {
            let ex_date = last - chrono::TimeDelta::days(91 * (count - n));
            format!("a - 0 +1 {ex_date} {amount}")
        })
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    at("2024-12-31", &history(&rows, closes), &SourcePolicy::default())
}

#[test]
fn a_special_without_its_type_is_known_by_the_price() {
    let check = |amount: &str, closes: &[(&str, i64)], special: bool| {
        let amounts = ["0.05", "0.05", "0.05", "0.05", amount];
        let found = quarterly(&amounts, closes);
        let flagged = |name: &str| found.metrics.flags.0.iter().any(|flag| flag == name);
        let held = found.quarantined.iter().any(|row| row.reason == "amount_outlier");
        assert_eq!(
            (flagged("special_by_price"), held, flagged("amount_held")),
            (special, !special, !special),
            "{amount} {closes:?}"
        );
        let newest = found.dividends.iter().rfind(|row| row.ex_date == date("2024-12-02"));
        assert_eq!(
            newest.and_then(|row| row.special_amount).map(|special| special.0),
            special.then_some(dec!(4.95)),
            "{amount} {closes:?}"
        );
        let regular = if special { dec!(0.2) } else { dec!(0.15) };
        assert_eq!(found.metrics.dps_ttm.unwrap_or_default().0, regular);
        assert_eq!(found.metrics.dps_forward.unwrap_or_default().0, dec!(0.2));
        assert_eq!(found.metrics.dividend_status, crate::row::DividendState::Active);
    };
    let before = ("2024-11-29", 100);
    check("5", &[before, ("2024-12-02", 95)], true);
    check("5", &[before, ("2024-12-02", 97)], true);
    check("5", &[before, ("2024-12-02", 98)], false);
    check("5", &[before, ("2024-12-02", 93)], true);
    check("5", &[before, ("2024-12-02", 92)], false);
    check("4.99", &[before, ("2024-12-02", 95)], false);
    // The first close on or after the ex-date is used only if it is at most five sessions after the ex-date.
    check("5", &[before, ("2024-12-09", 95)], true);
    check("5", &[before, ("2024-12-10", 95)], false);
    check("5", &[("2024-12-02", 95)], false);
    check("5", &[before], false);
}

#[test]
fn a_held_amount_counts_for_nothing_but_its_day() {
    let found = quarterly(&["0.05", "0.05", "0.05", "0.05", "5"], &[]);
    assert_eq!(found.metrics.payment_count, 4);
    assert_eq!(found.metrics.payment_streak_years, 2);
    assert_eq!(found.metrics.next.0.as_ref().map(|next| next.ex_date), Some(date("2025-03-04")));
    assert!(found.metrics.flags.0.contains(&"amount_held".to_owned()));
    let followed = quarterly(&["0.05", "0.05", "0.05", "0.05", "5", "0.05"], &[]);
    assert_eq!(followed.metrics.payment_count, 5);
    assert_eq!(followed.quarantined.len(), 1);
    assert!(!followed.metrics.flags.0.contains(&"amount_held".to_owned()));
    let restored = quarterly(&["0.05", "0.05", "0.05", "0.05", "5", "5"], &[]);
    assert_eq!((restored.metrics.payment_count, restored.quarantined.len()), (6, 0));
}

#[test]
fn two_rows_of_one_day_are_judged_together() {
    let rows = [
        "a - 0 +1 2023-12-04 0.05",
        "a - 0 +1 2024-03-04 0.05",
        "a - 0 +1 2024-06-03 0.05",
        "a - 0 +1 2024-09-03 0.05",
        "a - 0 +1 2024-12-02 0.3 &0.2",
        "a - 0 +1 2024-12-02 0.2",
    ];
    let found = derived(&rows, &SourcePolicy::default());
    assert_eq!(found.quarantined.len(), 2);
    // Amounts in different currencies are not compared.
    let mut foreign = history(&rows[..5], &[]);
    foreign.dividends[4].record.currency = "GBP".into();
    assert!(at("2024-12-31", &foreign, &SourcePolicy::default()).quarantined.is_empty());
}

#[test]
fn rows_their_neighbours_contradict_are_held_and_come_back() {
    let rows = ["a - 0 +1 2024-06-03 25", "a - 0 +1 2024-06-05 25 liquidation"];
    let with_close =
        |close: i64| at("2024-12-31", &history(&rows, &[("2024-05-31", close)]), &SourcePolicy::default());
    let held = with_close(20);
    assert_eq!(live(&held), ["2024-06-05 25"]);
    assert_eq!(held.quarantined[0].reason, "amount_exceeds_price");
    assert_eq!(live(&with_close(26)).len(), 2);
}

#[test]
fn a_bar_in_the_wrong_unit_is_held() {
    let closes = [("2024-06-03", 20), ("2024-06-04", 2010), ("2024-06-05", 20), ("2024-06-06", 30)];
    let found = at("2024-06-06", &history(&[], &closes), &SourcePolicy::default());
    assert_eq!(found.bars.close, [20, 20, 30]);
    assert_eq!(
        (found.quarantined[0].reason.as_str(), found.quarantined[0].kind.as_str()),
        ("price_unit_error", "price")
    );
}

#[test]
fn a_person_confirms_that_a_row_is_wrong_by_itself() {
    let mut history = history(&["a x 0 +1 2024-03-07 0"], &[]);
    let split = serde_json::json!({ "symbol": "TEST", "ex_date": "2024-05-02", "from": "2", "to": "2" });
    history.splits = vec![observed(split)];
    let reasons = |history: &History| -> Vec<String> {
        let rows = at("2024-12-31", history, &SourcePolicy::default()).quarantined;
        rows.iter().map(|row| format!("{} {}", row.kind, row.reason)).collect()
    };
    assert_eq!(reasons(&history), ["dividend non_positive_amount", "split no_share_change"]);
    let decided = |verdict: &str, kind: &str, id: Option<&str>, day: &str, value: &str| {
        observed(serde_json::json!({
            "symbol": "TEST", "verdict": verdict, "kind": kind, "source": "a", "row_id": id, "date": day,
            "value": value, "reason": "held", "note": "the filing says so",
        }))
    };
    let mut check = |verdict: &str, expected: [&str; 2]| {
        history.decisions = vec![
            decided(verdict, "dividend", Some("x"), "2024-03-07", "0"),
            decided(verdict, "split", None, "2024-05-02", "2"),
        ];
        assert_eq!(reasons(&history), expected, "{verdict}");
    };
    check("confirm", ["dividend confirmed", "split confirmed"]);
    // A release does not make an impossible row valid.
    check("release", ["dividend non_positive_amount", "split no_share_change"]);
}
