//! What the payer pays: status, trailing and indicated dividends, yields; nothing is added over two currencies (R4).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::basis::Basis;
use crate::measure::arithmetic::{count, percent_of, settle};
use crate::measure::merge::Payment;
use crate::measure::risk::last_month;
use crate::measure::safety::is_suspect;
use crate::measure::status::{StatusFacts, status};
use crate::measure::yields::{
    Forward, HeadlineFacts, YieldRange, forward, headline, is_unusual_count, months_before, sum, trailing,
    yield_range,
};
use crate::row::{DividendState, Flag, Flags, YieldBasis};

/// Dividends and yields, amounts per share in the dividend currency, yields in percent.
#[derive(Debug)]
pub(crate) struct Income {
    pub status: DividendState,
    /// Whether dividends and prices are in different currencies.
    pub mismatch: bool,
    /// Whether the trailing year itself was paid in several.
    pub mixed: bool,
    pub dps_ttm: Option<Decimal>,
    pub dps_ttm_total: Option<Decimal>,
    pub ttm_payment_count: i32,
    pub forward: Forward,
    pub yield_ttm: Option<Decimal>,
    pub yield_ttm_total: Option<Decimal>,
    pub yield_forward: Option<Decimal>,
    pub dividend_yield: Option<Decimal>,
    pub yield_basis: Option<YieldBasis>,
    pub yield_range: Option<YieldRange>,
}

/// Measures dividends and yields; flags what is unusual about them.
pub(crate) fn income(basis: &Basis<'_>, flags: &mut Flags) -> Income {
    let as_of = basis.as_of;
    let status = payer_status(basis);
    let trailing_rates = trailing(&basis.rates, as_of);
    let mixed = mixes_currencies(basis);
    let mismatch = !basis.rates.is_empty() && (mixed || basis.dividend_currency != basis.currency);
    let dps_ttm = (!mixed).then(|| sum(trailing_rates));
    let dps_ttm_total = total_paid(basis.payments(), as_of, &basis.dividend_currency);
    let forward = if basis.is_fund() || !basis.is_listed {
        Forward::NONE
    } else {
        forward(&basis.rates, basis.payments_per_year(), status, as_of, basis.rules)
    };
    let yield_of =
        |dividend: Option<Decimal>| if mismatch { None } else { percent_of(dividend?, basis.close()?) };
    let (yield_ttm, yield_forward) = (yield_of(dps_ttm), yield_of(forward.amount));
    let has_forward = forward.amount.is_some();
    let (dividend_yield, yield_basis) =
        headline(&HeadlineFacts { status, yield_forward, yield_ttm, has_forward, mismatch });
    let series = basis.series();
    let yield_range =
        if mismatch { None } else { yield_range(&basis.rates, &series, last_month(as_of), as_of) };
    let income = Income {
        status,
        mismatch,
        mixed,
        dps_ttm,
        dps_ttm_total,
        ttm_payment_count: count(trailing_rates.len()),
        forward,
        yield_ttm,
        yield_ttm_total: yield_of(dps_ttm_total),
        yield_forward,
        dividend_yield,
        yield_basis,
        yield_range,
    };
    flag_income(basis, &income, flags);
    income
}

fn payer_status(basis: &Basis<'_>) -> DividendState {
    let facts = StatusFacts {
        as_of: basis.as_of,
        last_ex_date: basis.ex_dates.last().copied(),
        last_declared: last_declared(basis),
        payments_per_year: basis.payments_per_year(),
        suspended_on: basis.security().and_then(|security| security.dividend_suspended_on),
    };
    status(&facts, &basis.rules.status)
}

fn last_declared(basis: &Basis<'_>) -> Option<NaiveDate> {
    let payments = basis.payments().iter().chain(&basis.merged.dividends.unproven);
    let regular = payments.filter(|payment| payment.class.is_regular());
    regular.map(|payment| payment.observation.record.declaration_date.unwrap_or(payment.ex_date)).max()
}

/// Whether a regular dividend of the last 12 months was paid in another currency only.
fn mixes_currencies(basis: &Basis<'_>) -> bool {
    let window = months_before(basis.as_of, 12);
    let recent = basis.payments().iter().rev().take_while(|payment| payment.ex_date > window);
    recent.filter(|payment| payment.ex_date <= basis.as_of && payment.class.is_regular()).any(|payment| {
        payment.observation.record.currency != basis.dividend_currency
            && basis.rates.binary_search_by_key(&payment.ex_date, |rate| rate.ex_date).is_err()
    })
}

/// Regular and special cash of the last 12 months; `None` when some was in another currency.
fn total_paid(payments: &[Payment<'_>], as_of: NaiveDate, currency: &str) -> Option<Decimal> {
    let start = months_before(as_of, 12);
    let recent = payments.iter().rev().take_while(|payment| payment.ex_date > start);
    let mut total = Decimal::ZERO;
    for payment in recent.filter(|payment| payment.class.in_ttm_total() && payment.ex_date <= as_of) {
        if payment.observation.record.currency != currency {
            return None;
        }
        total = total.checked_add(payment.adjusted)?;
    }
    Some(settle(total))
}

fn flag_income(basis: &Basis<'_>, income: &Income, flags: &mut Flags) {
    if income.mismatch {
        flags.set(Flag::CurrencyMismatch);
    }
    if is_suspect(income.dividend_yield, &basis.rules.safety) {
        flags.set(Flag::YieldSuspect);
    }
    if income.forward.latest_unusual {
        flags.set(Flag::LatestAmountUnusual);
    }
    let partial = is_partial_year(basis);
    if partial {
        flags.set(Flag::TtmIncomplete);
    }
    // A young history cannot hold as many payments as a year, but it can hold more.
    let (count, expected) = (income.ttm_payment_count, basis.payments_per_year());
    let unusual =
        expected.is_some_and(|expected| is_unusual_count(count, expected) && (count > expected || !partial));
    if unusual && income.status == DividendState::Active {
        flags.set(Flag::TtmPaymentCountUnusual);
    }
}

/// Whether the trailing year is only partly covered: listed since, or data that begin since.
///
/// A first bar tells the listing only where no ex-date lies before it; data that begin with a dividend may begin up to one
/// period into the window, and data without any say nothing.
fn is_partial_year(basis: &Basis<'_>) -> bool {
    let window = months_before(basis.as_of, 12);
    if let Some(listed) = basis.security().and_then(|security| security.ipo_date) {
        return listed > window;
    }
    let Some(first) = basis.rates.first() else { return false };
    let first_ex_date = basis.payments().first().map_or(first.ex_date, |payment| payment.ex_date);
    let series = basis.series();
    match (!series.bars.is_empty()).then(|| series.date(0)).filter(|bar| *bar < first_ex_date) {
        Some(first_bar) => first_bar > window,
        None => {
            let period = basis.payments_per_year().map_or(0, |payments| 365 / i64::from(payments.max(1)));
            (first_ex_date - window).num_days() > period
        }
    }
}
