use market::bars::MISSING;
use market::day::date_of;
use market::metrics::AdjustmentFactor;
use market::metrics::prices::adjustment::Ratio;
use market::price::{AdjustedBars, CumulativeFactors, Interval, PriceBasis, PricePoint, RawBars};
use market::row::TableRow;
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::parameters::Output;

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

proptest! {
    #[test]
    fn bytes_equal_those_of_the_struct(
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
        let output = Output { text_decimals: text, columns: PricePoint::COLUMNS, ..Output::default() };
        let row_labels = RowLabels { symbol: "A.B", currency: None };
        let mut written = Vec::new();
        PriceEncoder::new(&output).encode(&adjusted, row_labels, &periods, &mut written);
        let points: Vec<PricePoint> = periods.iter().map(|period| adjusted.point(period)).collect();
        let body = || serde_json::to_string(&points).unwrap_or_default();
        let expected = if text { market::decimal::with_decimals_as_text(body) } else { body() };
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
        let mut writer = ValueWriter { out: &mut out, quote: text.then_some(b'"'), is_csv: false };
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
        let mut writer = ValueWriter { out: &mut out, quote: None, is_csv: false };
        writer.write_count(Some(count));
        writer.write_date(day);
        prop_assert_eq!(String::from_utf8_lossy(&out), format!("{count}\"{}\"", date_of(day)));
    }
}
