//! Reference model: the rules in exact rationals, computed bar by bar without optimizations.

use chrono::{Datelike, Months, NaiveDate};
use num_bigint::BigInt;
use num_rational::BigRational;
use rust_decimal::Decimal;

use super::market::{Case, Paid, as_of};

pub(crate) type Rational = BigRational;

fn ratio(numerator: i64, denominator: i64) -> Rational {
    Rational::new(BigInt::from(numerator), BigInt::from(denominator))
}

fn whole(value: i64) -> Rational {
    ratio(value, 1)
}

fn zero() -> Rational {
    whole(0)
}

/// Rounds to `places` decimal places, half away from zero.
pub(crate) fn nearest(value: &Rational, places: u32) -> Decimal {
    let scaled = (value * Rational::from_integer(BigInt::from(10u64.pow(places)))).round().to_integer();
    let mantissa: i128 = scaled.to_string().parse().expect("fits");
    Decimal::from_i128_with_scale(mantissa, places).normalize()
}

fn of_decimal(value: Decimal) -> Rational {
    Rational::new(BigInt::from(value.mantissa()), BigInt::from(10i128.pow(value.scale())))
}

/// Product of old shares / new shares of all splits after `after`, up to and including `through`.
fn splits(case: &Case, after: NaiveDate, through: NaiveDate) -> Rational {
    let passed = case.splits.iter().filter(|split| after < split.0 && split.0 <= through);
    passed.fold(whole(1), |product, split| product * ratio(split.1, split.2))
}

fn amount(case: &Case, paid: &Paid) -> Rational {
    ratio(paid.amount, 10_000) * splits(case, paid.ex_date, as_of())
}

fn year_before(day: NaiveDate) -> NaiveDate {
    day - Months::new(12)
}

pub(crate) fn trailing(case: &Case, with_specials: bool) -> Rational {
    let counted = case.dividends.iter().filter(|paid| with_specials || !paid.special);
    let recent = counted.filter(|paid| year_before(as_of()) < paid.ex_date && paid.ex_date <= as_of());
    recent.fold(zero(), |sum, paid| sum + amount(case, paid))
}

pub(crate) fn price(case: &Case) -> Option<Rational> {
    let last = case.bars.last()?;
    Some(ratio(last.close, 100) * splits(case, last.day, as_of()))
}

pub(crate) fn trailing_yield(case: &Case) -> Option<Rational> {
    Some(trailing(case, false) / price(case)? * whole(100))
}

pub(crate) fn annual_total(case: &Case, year: i32) -> Rational {
    let paid = case.dividends.iter().filter(|paid| !paid.special && paid.ex_date.year() == year);
    paid.fold(zero(), |sum, paid| sum + amount(case, paid))
}

/// True if `percent` is the exact growth rate per year over `span` years, rounded to four places. The check compares
/// powers of the rounding bounds, to avoid a root.
pub(crate) fn is_growth(case: &Case, span: i32, percent: Decimal) -> bool {
    let last = as_of().year() - 1;
    let exact = annual_total(case, last) / annual_total(case, last - span);
    let power = |percent: Decimal| {
        let base = whole(1) + of_decimal(percent) / whole(100);
        (0..span).fold(whole(1), |product, _| product * base.clone())
    };
    let half = Decimal::new(5, 5);
    power(percent - half) <= exact && exact <= power(percent + half)
}

pub(crate) fn streak(case: &Case) -> i32 {
    let payments = |year: i32| {
        let regular = case.dividends.iter().filter(|paid| !paid.special);
        regular.filter(|paid| paid.ex_date.year() == year).count()
    };
    let first = case.dividends.iter().find(|paid| !paid.special).map(|paid| paid.ex_date.year());
    let is_begun = |year: i32| Some(year) == first && payments(year) < payments(year + 1);
    let rises = |year: i32| {
        let before = annual_total(case, year - 1);
        !is_begun(year - 1)
            && before > zero()
            && annual_total(case, year) / before - whole(1) > ratio(5, 10_000)
    };
    let running = as_of().year();
    let mut year = if rises(running) { running } else { running - 1 };
    let mut years = 0;
    while rises(year) {
        years += 1;
        year -= 1;
    }
    years
}

fn close(case: &Case, index: usize) -> Rational {
    ratio(case.bars[index].close, 100)
}

fn index_of(case: &Case, day: NaiveDate) -> usize {
    case.bars.iter().position(|bar| bar.day == day).expect("a bar of the day")
}

pub(crate) fn split_adjusted(case: &Case, day: NaiveDate) -> Rational {
    close(case, index_of(case, day)) * splits(case, day, as_of())
}

/// Cash per share of one ex-date, without adjustment for later splits.
fn paid_on(case: &Case, day: NaiveDate) -> Rational {
    case.dividends
        .iter()
        .filter(|paid| paid.ex_date == day)
        .fold(zero(), |sum, paid| sum + ratio(paid.amount, 10_000))
}

pub(crate) fn adjusted(case: &Case, day: NaiveDate) -> Rational {
    let mut ex_dates: Vec<NaiveDate> =
        case.dividends.iter().map(|paid| paid.ex_date).filter(|ex| *ex > day && *ex <= as_of()).collect();
    ex_dates.dedup();
    let factor = ex_dates.iter().fold(whole(1), |product, ex_date| {
        match case.bars.iter().rposition(|bar| bar.day < *ex_date) {
            None => product,
            Some(before) => {
                let previous = close(case, before) * splits(case, case.bars[before].day, *ex_date);
                let paid = paid_on(case, *ex_date);
                if paid >= previous { product } else { product * (whole(1) - paid / previous) }
            }
        }
    });
    split_adjusted(case, day) * factor
}

/// Total return in percent, compounded bar by bar. A dividend between two bars is reinvested at the later bar.
pub(crate) fn total_return(case: &Case) -> Rational {
    let mut growth = whole(1);
    for index in 1..case.bars.len() {
        let (before, day) = (case.bars[index - 1].day, case.bars[index].day);
        let mut ex_dates: Vec<NaiveDate> =
            case.dividends.iter().map(|p| p.ex_date).filter(|ex| before < *ex && *ex <= day).collect();
        ex_dates.dedup();
        let paid = ex_dates.iter().fold(zero(), |sum, ex| sum + paid_on(case, *ex) * splits(case, *ex, day));
        growth *= (close(case, index) + paid) / splits(case, before, day) / close(case, index - 1);
    }
    (growth - whole(1)) * whole(100)
}

/// True if `found` is the exact volatility, rounded to four places. The check compares squares of the rounding bounds,
/// to avoid a root. `None` is correct only with fewer than 60 returns.
pub(crate) fn is_volatility(case: &Case, found: Option<Decimal>) -> bool {
    let count = (case.bars.len() - 1).min(252);
    let Some(found) = found else { return count < 60 };
    let newest = &case.bars[case.bars.len() - 1 - count..];
    let closes: Vec<Rational> = newest.iter().map(|bar| adjusted(case, bar.day)).collect();
    // Exact rationals of 250 days would become very long. Thirty decimal places are more than enough for a result with
    // four.
    let cut = |value: Rational| {
        let scale = Rational::from_integer(BigInt::from(10u8).pow(30));
        (value * scale.clone()).round() / scale
    };
    let returns: Vec<Rational> =
        closes.windows(2).map(|pair| cut(pair[1].clone() / pair[0].clone() - whole(1))).collect();
    let length = whole(count as i64);
    let mean = returns.iter().fold(zero(), |sum, value| sum + value) / length.clone();
    let squares =
        returns.iter().fold(zero(), |sum, value| sum + (value - mean.clone()) * (value - mean.clone()));
    let variance = squares / (length - whole(1)) * whole(252) * whole(10_000);
    let square = |value: Decimal| of_decimal(value) * of_decimal(value);
    let half = Decimal::new(5, 5) + Decimal::new(1, 10);
    square(found - half) <= variance && variance <= square(found + half)
}

pub(crate) fn year_extreme(case: &Case, high: bool) -> Option<Rational> {
    let recent = case.bars.iter().filter(|bar| year_before(as_of()) < bar.day);
    let prices =
        recent.map(|bar| ratio(if high { bar.high } else { bar.low }, 100) * splits(case, bar.day, as_of()));
    if high { prices.max() } else { prices.min() }
}

pub(crate) fn average_close(case: &Case, count: usize) -> Option<Rational> {
    let from = case.bars.len().checked_sub(count)?;
    let sum = case.bars[from..].iter().fold(zero(), |sum, bar| sum + split_adjusted(case, bar.day));
    Some(sum / whole(count as i64))
}
