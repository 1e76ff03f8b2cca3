//! Price series of a security: raw bars and splits. Closes can be converted to the price basis or the share basis of
//! any day (see `adjustment`).

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::adjustment::Splits;
use crate::bars::Bars;
use crate::day::{date_of, day_number, position_on_or_after};

/// Maximum number of days between two adjacent bars.
pub(crate) const ADJACENT_DAYS: i32 = 7;

/// Raw bars sorted by day, and the splits of the security.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PriceSeries<'a> {
    pub bars: &'a Bars,
    pub splits: &'a Splits,
}

impl<'a> PriceSeries<'a> {
    pub(crate) fn new(bars: &'a Bars, splits: &'a Splits) -> Self {
        Self { bars, splits }
    }

    /// Index of the newest bar on or before a day; `None` without such a bar.
    pub(crate) fn at_or_before(&self, day: NaiveDate) -> Option<usize> {
        position_on_or_after(&self.bars.day, day_number(day).saturating_add(1)).checked_sub(1)
    }

    /// Index of the newest bar before a day; `None` without such a bar.
    pub(crate) fn before(&self, day: NaiveDate) -> Option<usize> {
        position_on_or_after(&self.bars.day, day_number(day)).checked_sub(1)
    }

    /// Index of the first bar on or after a day; `None` without such a bar.
    pub(crate) fn at_or_after(&self, day: NaiveDate) -> Option<usize> {
        let index = position_on_or_after(&self.bars.day, day_number(day));
        (index < self.bars.len()).then_some(index)
    }

    /// Session of the bar at an index.
    pub(crate) fn date(&self, index: usize) -> NaiveDate {
        date_of(self.bars.day[index])
    }

    /// Raw close of the bar at an index.
    pub(crate) fn close(&self, index: usize) -> Decimal {
        Decimal::new(self.bars.close[index], self.bars.scale)
    }

    /// Close of a bar on the price basis of the day `basis`. It is adjusted for the splits and price-only actions
    /// between the day of the bar and `basis`.
    pub(crate) fn close_on_basis(&self, index: usize, basis: NaiveDate) -> Decimal {
        if self.splits.events().is_empty() {
            return self.close(index);
        }
        self.splits.price_ratio_to_basis(self.date(index), basis).apply(self.close(index))
    }

    /// Close of a bar on the share basis of the day `basis`, comparable with amounts per share. Price-only actions are
    /// ignored.
    pub(crate) fn close_on_share_basis(&self, index: usize, basis: NaiveDate) -> Decimal {
        self.splits.ratio_to_basis(self.date(index), basis).apply(self.close(index))
    }

    /// Last close before a day, on the price basis of that day; `None` without an earlier bar.
    pub(crate) fn close_before(&self, day: NaiveDate) -> Option<Decimal> {
        self.before(day).map(|index| self.close_on_basis(index, day))
    }

    /// Newest bar of each of the `months` months up to `last`, oldest first. A pair is [`month_number`] and the index
    /// of the bar. Months without a bar are left out.
    pub(crate) fn month_ends(&self, last: i32, months: i32) -> Vec<(i32, usize)> {
        let mut ends = Vec::with_capacity(usize::try_from(months).unwrap_or_default());
        for month in last - months + 1..=last {
            let newest = first_of_month(month + 1).and_then(|next| self.before(next));
            let of_month =
                newest.zip(first_of_month(month)).filter(|(index, start)| self.date(*index) >= *start);
            ends.extend(of_month.map(|(index, _)| (month, index)));
        }
        ends
    }
}

/// Number of the calendar month of a date: year x 12 + month - 1.
pub(crate) fn month_number(date: NaiveDate) -> i32 {
    date.year() * 12 + i32::try_from(date.month0()).unwrap_or_default()
}

fn first_of_month(month: i32) -> Option<NaiveDate> {
    let number = u32::try_from(month.rem_euclid(12)).ok()? + 1;
    NaiveDate::from_ymd_opt(month.div_euclid(12), number, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::{Bar, BarVersion, MISSING};
    use crate::metrics::prices::adjustment::{Ratio, SplitEvent};

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn bars(rows: &[(&str, i64)]) -> Bars {
        let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        let missing = MISSING;
        let (open, high, low, volume, vwap, trade_count) =
            (missing, missing, missing, missing, missing, missing);
        for (day, close) in rows {
            let day = day_number(date(day));
            bars.push(Bar { day, open, high, low, close: *close, volume, vwap, trade_count }, 0);
        }
        bars
    }

    #[test]
    fn sessions_around_a_day() {
        let bars = bars(&[("2024-01-05", 4_000), ("2024-01-08", 4_100)]);
        let splits = Splits::default();
        let series = PriceSeries::new(&bars, &splits);
        let check = |day: &str, expected: [Option<usize>; 3]| {
            let day = date(day);
            assert_eq!(
                [series.before(day), series.at_or_before(day), series.at_or_after(day)],
                expected,
                "{day}"
            );
        };
        check("2024-01-04", [None, None, Some(0)]);
        check("2024-01-05", [None, Some(0), Some(0)]);
        check("2024-01-06", [Some(0), Some(0), Some(1)]);
        check("2024-01-08", [Some(0), Some(1), Some(1)]);
        check("2024-01-09", [Some(1), Some(1), None]);
    }

    #[test]
    fn closes_on_the_shares_of_any_day() {
        let bars = bars(&[("2024-01-05", 4_000), ("2024-01-08", 2_100)]);
        let ratio = Ratio { from: dec!(1), to: dec!(2) };
        let splits = Splits::new(vec![SplitEvent::of_shares(date("2024-01-08"), ratio)]);
        let series = PriceSeries::new(&bars, &splits);
        assert_eq!((series.close(0), series.date(1)), (dec!(40), date("2024-01-08")));
        assert_eq!(series.close_on_basis(0, date("2024-01-05")), dec!(40));
        assert_eq!(series.close_on_basis(0, date("2024-02-01")), dec!(20));
        assert_eq!(series.close_on_basis(1, date("2024-01-05")), dec!(42));
        assert_eq!(series.close_before(date("2024-01-08")), Some(dec!(20)));
        assert_eq!(series.close_before(date("2024-01-07")), Some(dec!(40)));
        assert_eq!(series.close_before(date("2024-01-05")), None);
    }

    #[test]
    fn the_last_session_of_each_month() {
        let days = ["2023-10-31", "2023-11-01", "2023-11-30", "2024-01-02", "2024-01-31", "2024-03-01"];
        let bars = bars(&days.map(|day| (day, 100)));
        let splits = Splits::default();
        let series = PriceSeries::new(&bars, &splits);
        let (march, january) = (month_number(date("2024-03-29")), month_number(date("2024-01-01")));
        assert_eq!((march - january, january - month_number(date("2023-12-31"))), (2, 1));
        // December and February have no session.
        assert_eq!(series.month_ends(march, 5), [(january - 2, 2), (january, 4), (march, 5)]);
        assert_eq!(
            series.month_ends(march, 6),
            [(january - 3, 0), (january - 2, 2), (january, 4), (march, 5)]
        );
        assert_eq!(series.month_ends(january + 1, 2), [(january, 4)]);
        assert_eq!(series.month_ends(january - 1, 1), []);
    }
}
