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
    ) {
        let bars = columns(&rows, scale);
        let factors = factors(&events, &bars);
        let cumulative = CumulativeFactors::new(&factors, None);
        let (split, spin_off, dividend) = basis;
        let basis = PriceBasis { split, spin_off, dividend };
        let adjusted = AdjustedBars { bars: &bars, cumulative: &cumulative, factors: &factors, basis };
        let periods = Interval::ALL[interval].periods(&bars.day, 0..bars.len());
        let output = Output { text_decimals: text, columns: PricePoint::COLUMNS, ..Output::default() };
        let row_labels = RowLabels { symbol: "A.B", currency: None };
        let written = PriceEncoder::new(&adjusted, row_labels, &output, periods.len()).encode_rows(periods.iter());
        let points: Vec<PricePoint> = periods.iter().map(|period| adjusted.point(period)).collect();
        let body = || serde_json::to_string(&points).unwrap_or_default();
        let expected = if text { market::decimal::with_decimals_as_text(body) } else { body() };
        prop_assert_eq!(String::from_utf8_lossy(&written).into_owned(), expected.trim_matches(['[', ']']));
    }
}
