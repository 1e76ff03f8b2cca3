use super::*;
use crate::bars::{Bar, BarVersion, Bars};
use crate::day::day_number;
use crate::metrics::prices::adjustment::Ratio;

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

fn factor(day: &str, to: i64, dividend_factor: &str, dividend: &str) -> AdjustmentFactor {
    AdjustmentFactor {
        ex_date: day.parse().expect("a date"),
        split: Ratio { from: Decimal::ONE, to: to.into() },
        dividend_factor: decimal(dividend_factor),
        dividend: decimal(dividend),
        value: None,
        price_only: Ratio::ONE,
    }
}

/// Raw bars from rows of (day, open, high, low, close, volume, vwap, trades). Prices are in cents.
fn raw(rows: &[(&str, [i64; 7])]) -> RawBars {
    let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    for (day, [open, high, low, close, volume, vwap, trade_count]) in rows.iter().copied() {
        let day = day_number(day.parse().expect("a date"));
        bars.push(Bar { day, open, high, low, close, volume, vwap, trade_count }, 0);
    }
    let mut raw = RawBars::default();
    assert!(raw.is_empty());
    for (_, year) in bars.by_year() {
        raw.append(year).expect("bars");
    }
    raw
}

const NONE: i64 = MISSING;

/// Price point of a period as text. The dividend has its ex-date on a day without a session.
fn told(period: SessionRange, basis: PriceBasis) -> String {
    let rows = [
        ("2023-12-29", [9_800, 10_100, 9_700, 10_000, 1_000, 9_900, 10]),
        ("2024-01-02", [10_000, 10_400, 9_900, 10_200, 2_000, 10_100, 20]),
        ("2024-01-03", [5_100, 5_300, 5_000, 5_200, 3_000, NONE, NONE]),
        ("2024-01-05", [5_200, 5_400, 5_100, 5_300, NONE, 5_200, 5]),
    ];
    let factors = [factor("2024-01-03", 2, "1", "0"), factor("2024-01-04", 1, "0.99", "0.5")];
    told_of(&raw(&rows), &factors, period, basis)
}

/// Price point as text: `date open high low close volume vwap trades raw adjusted factors dividend split change
/// percent`.
fn told_of(bars: &RawBars, factors: &[AdjustmentFactor], period: SessionRange, basis: PriceBasis) -> String {
    let cumulative = CumulativeFactors::new(factors, None);
    let adjusted = AdjustedBars { bars, cumulative: &cumulative, factors, basis };
    let point = adjusted.point(&period);
    let price = |value: Option<ExactDecimal>| value.map_or("-".to_owned(), |value| value.to_string());
    let count = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
    let words = [
        point.date.to_string(),
        price(point.open),
        price(point.high),
        price(point.low),
        point.close.to_string(),
        count(point.volume),
        price(point.vwap),
        count(point.trade_count),
        point.raw_close.to_string(),
        point.adj_close.to_string(),
        point.split_factor.to_string(),
        point.total_factor.to_string(),
        price(point.dividend),
        price(point.split_ratio),
        price(point.change),
        price(point.change_percent),
    ];
    words.join(" ")
}

#[test]
fn a_session_on_the_shares_of_today() {
    assert_eq!(
        told(0..1, PriceBasis::SPLIT),
        "2023-12-29 49 50.5 48.5 50 2000 49.5 10 100 49.5 0.5 0.495 - - - -"
    );
    assert_eq!(
        told(1..2, PriceBasis::SPLIT),
        "2024-01-02 50 52 49.5 51 4000 50.5 20 102 50.49 0.5 0.495 - - 1 2"
    );
    assert_eq!(told(2..3, PriceBasis::SPLIT), "2024-01-03 51 53 50 52 3000 - - 52 51.48 1 0.99 - 2 1 1.9608");
    // An ex-date without a session appears on the next session.
    assert_eq!(told(3..4, PriceBasis::SPLIT), "2024-01-05 52 54 51 53 - 52 5 53 53 1 1 0.5 - 1 1.9231");
}

#[test]
fn a_session_as_traded_and_without_dividends() {
    assert_eq!(
        told(1..2, PriceBasis::RAW),
        "2024-01-02 100 104 99 102 2000 101 20 102 50.49 0.5 0.495 - - 2 2"
    );
    assert_eq!(
        told(1..2, PriceBasis::ALL),
        "2024-01-02 49.5 51.48 49.005 50.49 4000 49.995 20 102 50.49 0.5 0.495 - - 0.99 2"
    );
}

#[test]
fn a_period_begins_with_its_first_session_and_ends_with_its_last() {
    assert_eq!(told(1..4, PriceBasis::SPLIT), "2024-01-05 50 54 49.5 53 7000 - 25 53 53 1 1 0.5 2 3 6");
    // Average prices are weighted by shares: (49.5 x 2000 + 50.5 x 4000) / 6000.
    assert_eq!(
        told(0..2, PriceBasis::SPLIT),
        "2024-01-02 49 52 48.5 51 6000 50.166667 30 102 50.49 0.5 0.495 - - - -"
    );
}

#[test]
fn the_first_session_tells_of_its_own_day_and_of_nothing_before_it() {
    let bars = raw(&[("2024-01-02", [NONE, NONE, NONE, 10_000, NONE, NONE, NONE])]);
    assert!(!bars.is_empty());
    let events = [
        factor("2023-12-29", 3, "0.9", "0.7"),
        factor("2024-01-01", 1, "0.9", "0.6"),
        factor("2024-01-02", 2, "0.9", "0.5"),
        factor("2024-01-03", 1, "0.9", "0.4"),
    ];
    assert_eq!(
        told_of(&bars, &events, 0..1, PriceBasis::SPLIT),
        "2024-01-02 - - - 100 - - - 100 90 1 0.9 0.5 2 - -"
    );
}

#[test]
fn what_is_not_known_or_does_not_fit_is_absent() {
    let bare = raw(&[
        ("2024-01-02", [NONE, NONE, NONE, 100, NONE, NONE, NONE]),
        ("2024-01-03", [NONE, 120, NONE, 100, i64::MAX - 1, 100, i64::MAX - 1]),
        ("2024-01-04", [90, NONE, 80, 100, 2, 100, 2]),
    ]);
    assert_eq!(told_of(&bare, &[], 0..1, PriceBasis::ALL), "2024-01-02 - - - 1 - - - 1 1 1 1 - - - -");
    assert_eq!(told_of(&bare, &[], 0..3, PriceBasis::RAW), "2024-01-04 0.9 1.2 0.8 1 - - - 1 1 1 1 - - - -");
    let halved = [factor("2024-01-05", 2, "1", "0")];
    assert_eq!(
        told_of(&bare, &halved, 2..3, PriceBasis::SPLIT),
        "2024-01-04 0.45 - 0.4 0.5 4 0.5 2 1 0.5 0.5 0.5 - - 0 0"
    );
}
