//! Range of trailing yields: examples computed by hand.

use super::*;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// One bar with a close of 100 at each month end from January 2012 to December 2023. `other` replaces the closes of
/// some days.
fn month_ends(other: &[(&str, i64)]) -> crate::bars::Bars {
    use crate::bars::{Bar, BarVersion, Bars, MISSING};
    use crate::day::day_number;
    let mut bars = Bars { versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    let last_days = date("2012-01-01")
        .iter_days()
        .filter(|day| day.succ_opt().is_some_and(|next| chrono::Datelike::day(&next) == 1));
    for day in last_days.take_while(|day| *day < date("2024-01-01")) {
        let close = other.iter().find(|(other, _)| date(other) == day).map_or(100, |(_, close)| *close);
        let (day, missing) = (day_number(day), MISSING);
        let (open, high, low, volume, vwap, trade_count) =
            (missing, missing, missing, missing, missing, missing);
        bars.push(Bar { day, open, high, low, close, volume, vwap, trade_count }, 0);
    }
    bars
}

/// Yield range up to the month of `last`, as text: average, highest and lowest yield.
fn range(paid: &[(&str, Decimal)], other: &[(&str, i64)], split: Option<&str>, last: &str) -> Option<String> {
    use crate::metrics::prices::adjustment::{Ratio, SplitEvent, Splits};
    let bars = month_ends(other);
    let halved = |day: &str| SplitEvent::of_shares(date(day), Ratio { from: dec!(1), to: dec!(2) });
    let splits = Splits::new(split.map(halved).into_iter().collect());
    let (series, last) = (PriceSeries::new(&bars, &splits), date(last));
    let rates: Vec<RegularDividend> =
        paid.iter().map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount }).collect();
    let found = yield_range(&rates, &series, month_number(last), date("2024-01-31"))?;
    let told = |value: Decimal| value.round_dp(4).normalize();
    Some(format!("{} {} {}", told(found.average), told(found.highest), told(found.lowest)))
}

#[test]
fn yields_of_month_ends_that_have_twelve_months_behind_them() {
    let paid =
        [("2012-12-31", dec!(2)), ("2013-12-31", dec!(2)), ("2014-12-31", dec!(3)), ("2015-12-31", dec!(3))];
    // December 2013 is the first month end with twelve months of history. Its trailing year includes the payment on the
    // month end itself, but not the payment a year earlier.
    assert_eq!(range(&paid, &[], None, "2014-10-31"), None);
    assert_eq!(range(&paid, &[], None, "2014-11-30").as_deref(), Some("2 2 2"));
    assert_eq!(range(&paid, &[], None, "2014-12-31").as_deref(), Some("2.0769 3 2"));
    assert_eq!(range(&paid, &[], None, "2015-01-31").as_deref(), Some("2.1429 3 2"));
    // In the first case, one close is half the price. In the second case, there is a 2 for 1 split.
    assert_eq!(range(&paid, &[("2014-06-30", 50)], None, "2014-11-30").as_deref(), Some("2.1667 4 2"));
    assert_eq!(range(&paid, &[], Some("2014-06-30"), "2014-11-30").as_deref(), Some("3 4 2"));
    assert_eq!(range(&[], &[], None, "2014-11-30"), None);
}

#[test]
fn a_yield_range_looks_back_sixty_months() {
    let paid: Vec<(String, Decimal)> = (2012..2024).map(|year| (format!("{year}-06-15"), dec!(2))).collect();
    let paid: Vec<(&str, Decimal)> = paid.iter().map(|(day, amount)| (day.as_str(), *amount)).collect();
    let low = [("2015-03-31", 50)];
    assert_eq!(range(&paid, &low, None, "2020-02-29").as_deref(), Some("2.0333 4 2"));
    assert_eq!(range(&paid, &low, None, "2020-03-31").as_deref(), Some("2 2 2"));
}
