use proptest::prelude::*;
use rust_decimal::Decimal;

use super::value_writer::ValueWriter;
use super::*;
use crate::bars::{Bar, BarVersion, Bars, MISSING};
use crate::day::{date_of, day_number};
use crate::decimal::ExactDecimal;
use crate::metrics::AdjustmentFactor;
use crate::metrics::prices::adjustment::Ratio;

/// Columns of a price point, in order.
fn point_columns() -> Vec<PriceColumn> {
    PriceColumn::ALL.iter().copied().skip_while(|column| *column != PriceColumn::Date).collect()
}

fn columns(rows: &[(i32, i64, i64, bool)], scale: u8) -> RawBars {
    let mut columns = RawBars::default();
    for (day, close, range, known) in rows {
        let maybe = |value: i64| if *known { value } else { MISSING };
        columns.day.push(columns.day.last().unwrap_or(&700_000) + day);
        columns.scale.push(scale + u8::from(*known));
        columns.open.push(maybe(close - range / 2));
        columns.high.push(close + range);
        columns.low.push(close - range);
        columns.close.push(*close);
        columns.volume.push(maybe(range * 1_000));
        columns.vwap.push(maybe(close + 1));
        columns.trade_count.push(maybe(*range));
    }
    columns
}

fn factors(events: &[(usize, i64, i64, i64)], columns: &RawBars) -> Vec<AdjustmentFactor> {
    let factor = |(position, from, to, cash): &(usize, i64, i64, i64)| AdjustmentFactor {
        ex_date: date_of(columns.day[position % columns.len()] - i32::from(*cash % 3 == 0)),
        split: Ratio { from: (*from).into(), to: (*to).into() },
        dividend_factor: Decimal::ONE - Decimal::from(*cash) / Decimal::from(7_001),
        dividend: Decimal::new(*cash, 3),
        value: None,
        price_only: Ratio { from: Decimal::from(1 + cash % 5), to: Decimal::from(1 + cash % 7) },
    };
    events.iter().map(factor).collect()
}

/// Price point of a period, computed only with decimal arithmetic.
fn point(adjusted: &AdjustedBars<'_>, period: &SessionRange) -> PricePoint {
    let last = period.end - 1;
    let price = |session: usize, column: &[i64]| {
        adjusted.exact(session, column[session], adjusted.basis).map(ExactDecimal::amount)
    };
    let prices =
        |column: &[i64]| period.clone().filter_map(|session| price(session, column)).collect::<Vec<_>>();
    let close = |basis| {
        ExactDecimal::amount(adjusted.exact(last, adjusted.bars.close[last], basis).unwrap_or_default())
    };
    let step = adjusted.cumulative.at(adjusted.cumulative.position(adjusted.bars.day[last]));
    let (dividend, split_ratio) = adjusted.events(period);
    let change = adjusted.change(period);
    PricePoint {
        date: date_of(adjusted.bars.day[last]),
        open: prices(&adjusted.bars.open).first().copied(),
        high: prices(&adjusted.bars.high).into_iter().max(),
        low: prices(&adjusted.bars.low).into_iter().min(),
        close: close(adjusted.basis),
        volume: adjusted.volume(period),
        vwap: adjusted.vwap(period).map(ExactDecimal::amount),
        trade_count: adjusted.trade_count(period),
        raw_close: close(PriceBasis::RAW),
        adj_close: close(PriceBasis::ALL),
        split_factor: ExactDecimal(step.factor(PriceBasis::SPLIT)),
        total_factor: ExactDecimal(step.factor(PriceBasis::ALL)),
        dividend: dividend.map(ExactDecimal::amount),
        split_ratio: split_ratio.map(ExactDecimal),
        change: change.map(|(change, _)| ExactDecimal::amount(change)),
        change_percent: change.and_then(|(_, percent)| percent).map(ExactDecimal::percent),
    }
}

proptest! {
    #[test]
    fn bytes_equal_those_of_values_computed_with_decimals(
        rows in proptest::collection::vec((1i32..9, 1_000i64..9_000_000, 1i64..900, any::<bool>()), 1..40),
        events in proptest::collection::vec((0usize..40, 1i64..8, 1i64..8, 0i64..900), 0..5),
        scale in 0u8..7, interval in 0usize..5, basis in (any::<bool>(), any::<bool>(), any::<bool>()), text: bool,
        cut in (0usize..40, 0usize..40), descending: bool,
    ) {
        let bars = columns(&rows, scale);
        let factors = factors(&events, &bars);
        let cumulative = CumulativeFactors::new(&factors, None);
        let (split, spin_off, dividend) = basis;
        let basis = PriceBasis { split, spin_off, dividend };
        let adjusted = AdjustedBars { bars: &bars, cumulative: &cumulative, factors: &factors, basis };
        let sessions = cut.0.min(bars.len())..bars.len().saturating_sub(cut.1).max(cut.0.min(bars.len()));
        let mut periods = Interval::ALL[interval].periods(&bars.day, sessions);
        if descending {
            periods.reverse();
        }
        let labels = RowLabels { symbol: "A.B", exchange: b"", currency: None, age_sessions: Some(0) };
        let mut written = Vec::new();
        let format = PriceFormat::Json { text_decimals: text };
        PriceEncoder::new(&point_columns(), format).encode(&adjusted, labels, &periods, &mut written);
        let points: Vec<PricePoint> = periods.iter().map(|period| point(&adjusted, period)).collect();
        let body = || serde_json::to_string(&points).unwrap_or_default();
        let expected = if text { crate::decimal::with_decimals_as_text(body) } else { body() };
        prop_assert_eq!(String::from_utf8_lossy(&written).into_owned(), expected.trim_matches(['[', ']']));
    }

    #[test]
    fn scaled_integers_equal_the_decimal_library(
        mantissa in prop_oneof![
            -2_000_000i128..2_000_000,
            any::<i64>().prop_map(i128::from),
            (any::<i64>(), 0u32..63).prop_map(|(value, shift)| i128::from(value >> shift)),
            (any::<u64>(), any::<u32>(), any::<bool>()).prop_map(|(low, high, negative)| {
                let magnitude = (i128::from(high) << 64) + i128::from(low);
                if negative { -magnitude } else { magnitude }
            }),
            (0u32..29, -1i128..2).prop_map(|(places, next)| 10i128.pow(places) + next),
        ],
        text: bool,
    ) {
        let mut out = Vec::new();
        let mut writer = ValueWriter::new(&mut out, PriceFormat::Json { text_decimals: text });
        writer.write_scaled::<4>(mantissa);
        writer.out.push(b' ');
        writer.write_scaled::<6>(mantissa);
        let quote = if text { "\"" } else { "" };
        let [percent, price] = [4, 6].map(|places| Decimal::from_i128_with_scale(mantissa, places).normalize());
        let expected = format!("{quote}{percent}{quote} {quote}{price}{quote}");
        prop_assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn counts_and_dates_equal_the_standard_library(count: i64, day in 1i32..3_600_000) {
        let mut out = Vec::new();
        let mut writer = ValueWriter::new(&mut out, PriceFormat::Json { text_decimals: false });
        writer.write_count(Some(count));
        writer.write_date(day);
        prop_assert_eq!(String::from_utf8_lossy(&out), format!("{count}\"{}\"", date_of(day)));
    }
}

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
    let labels = RowLabels { symbol: "", exchange: b"", currency: None, age_sessions: Some(0) };
    let mut record = Vec::new();
    PriceEncoder::new(&point_columns(), PriceFormat::Csv).encode(&adjusted, labels, &[period], &mut record);
    let cells = String::from_utf8(record).expect("text");
    let cells: Vec<&str> =
        cells.trim_end().split(',').map(|cell| if cell.is_empty() { "-" } else { cell }).collect();
    cells.join(" ")
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
