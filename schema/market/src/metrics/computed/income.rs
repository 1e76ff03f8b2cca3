//! Income metrics: dividend status, trailing and forward dividends, yields. Amounts of two currencies are
//! never added (R4).
//!
//! Yields of dividends in another currency than the prices need a rate. The only known rates are those of payments with
//! rows in both currencies (R39). The trailing yield needs them for each payment of the 12 months. The forward yield
//! needs the rate of the payment from which the forward dividend is computed. Without a rate, a yield is null.
//!
//! A payer may be active only because of rows with a quarantined amount (R6, R30): all its newest amounts are
//! quarantined. Its trailing and forward dividends and its yields are then unknown, not 0.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::inputs::MetricInputs;
use crate::metrics::arithmetic::{length_to_i32, percent_of, quotient, remove_division_error};
use crate::metrics::calendar::months_before;
use crate::metrics::dividends::safety::is_suspect;
use crate::metrics::dividends::status::{StatusInput, dividend_status};
use crate::metrics::dividends::yields::{
    ForwardDividend, HeadlineInput, forward_dividend, headline_yield, is_unusual_count, sum, trailing_rates,
};
use crate::metrics::dividends::yields::{YieldRange, yield_range};
use crate::metrics::merge::Payment;
use crate::metrics::prices::risk::last_month;
use crate::row::{DividendState, Flag, Flags, YieldBasis};

/// Income metrics: amounts per share in the dividend currency, yields in percent.
#[derive(Debug)]
pub(crate) struct IncomeMetrics {
    pub status: DividendState,
    /// True if dividends and prices are in different currencies, and no rate for the headline yield is known.
    pub mismatch: bool,
    /// Price currency per dividend currency, for the forward yield. 1 if dividends and prices are in one currency, and
    /// `None` if no rate is known.
    pub forward_rate: Option<Decimal>,
    /// True if dividends of the last 12 months were paid in several currencies.
    pub mixed: bool,
    pub dps_ttm: Option<Decimal>,
    pub dps_ttm_total: Option<Decimal>,
    pub ttm_payment_count: i32,
    pub forward: ForwardDividend,
    pub yield_ttm: Option<Decimal>,
    pub yield_ttm_total: Option<Decimal>,
    pub yield_forward: Option<Decimal>,
    pub dividend_yield: Option<Decimal>,
    pub yield_basis: Option<YieldBasis>,
    pub yield_range: Option<YieldRange>,
}

/// Computes the income metrics. Sets flags for unusual values.
pub(crate) fn income(inputs: &MetricInputs<'_>, flags: &mut Flags) -> IncomeMetrics {
    let as_of = inputs.as_of;
    let status = payer_status(inputs, inputs.ex_dates.last().copied());
    let trailing_rates = trailing_rates(&inputs.rates, as_of);
    let mixed = mixes_currencies(inputs);
    let is_held = status == DividendState::Active && is_active_by_held_rows(inputs);
    let known = status != DividendState::Unknown && !is_held;
    let dps_ttm = (known && !mixed).then(|| sum(trailing_rates));
    let dps_ttm_total =
        if known { total_paid(inputs.payments(), as_of, &inputs.dividend_currency) } else { None };
    let forward = if inputs.is_fund() || !inputs.is_listed || is_held {
        ForwardDividend::NONE
    } else {
        forward_dividend(&inputs.rates, inputs.payments_per_year(), status, as_of, &inputs.rules.forward)
    };
    let is_foreign = !inputs.rates.is_empty() && inputs.dividend_currency != inputs.currency;
    let forward_rate = if is_foreign { forward_rate(inputs, &forward) } else { Some(Decimal::ONE) };
    let yield_of = |dividend: Option<Decimal>, rate: Option<Decimal>| {
        percent_of(dividend.filter(|_| !mixed)?.checked_mul(rate?)?, inputs.close()?)
    };
    let own = (!is_foreign).then_some(Decimal::ONE);
    let yield_ttm = match dps_ttm {
        Some(_) if is_foreign => yield_of(priced_ttm(inputs), Some(Decimal::ONE)),
        _ => yield_of(dps_ttm, own),
    };
    let yield_forward = yield_of(forward.amount, forward_rate);
    let has_forward = forward.amount.is_some();
    let is_known = if has_forward { forward_rate.is_some() } else { !is_foreign || yield_ttm.is_some() };
    let mismatch = !inputs.rates.is_empty() && (mixed || !is_known);
    let (dividend_yield, yield_basis) =
        headline_yield(&HeadlineInput { status, yield_forward, yield_ttm, has_forward, mismatch });
    let series = inputs.series();
    let yield_range = if mismatch || is_foreign || !known {
        None
    } else {
        yield_range(&inputs.rates, &series, last_month(as_of), as_of)
    };
    let income = IncomeMetrics {
        status,
        mismatch,
        forward_rate,
        mixed,
        dps_ttm,
        dps_ttm_total,
        ttm_payment_count: length_to_i32(trailing_rates.len()),
        forward,
        yield_ttm,
        yield_ttm_total: yield_of(dps_ttm_total, own),
        yield_forward,
        dividend_yield,
        yield_basis,
        yield_range,
    };
    flag_income(inputs, &income, flags);
    income
}

/// True if the payer is active only because of regular rows with a quarantined amount.
fn is_active_by_held_rows(inputs: &MetricInputs<'_>) -> bool {
    let proven = inputs.payments().iter().rev().find(|payment| payment.class.is_regular());
    let proven = proven.map(|payment| payment.ex_date);
    !inputs.merged.dividends.unproven.is_empty() && payer_status(inputs, proven) != DividendState::Active
}

fn payer_status(inputs: &MetricInputs<'_>, last_ex_date: Option<NaiveDate>) -> DividendState {
    let facts = StatusInput {
        as_of: inputs.as_of,
        last_ex_date,
        last_declared: last_declared(inputs),
        payments_per_year: inputs.payments_per_year(),
        suspended_on: inputs.security().and_then(|security| security.dividend_suspended_on),
        is_covered: inputs.completeness.is_covered(),
    };
    dividend_status(&facts, &inputs.rules.status)
}

fn last_declared(inputs: &MetricInputs<'_>) -> Option<NaiveDate> {
    let payments = inputs.payments().iter().chain(&inputs.merged.dividends.unproven);
    let regular = payments.filter(|payment| payment.class.is_regular());
    regular.map(|payment| payment.declared_by()).max()
}

/// True if an ex-date of the last 12 months has regular payments, but none in the dividend currency.
fn mixes_currencies(inputs: &MetricInputs<'_>) -> bool {
    let window = months_before(inputs.as_of, 12);
    let recent = inputs.payments().iter().rev().take_while(|payment| payment.ex_date > window);
    recent.filter(|payment| payment.ex_date <= inputs.as_of && payment.class.is_regular()).any(|payment| {
        payment.observation.record.currency != inputs.dividend_currency
            && inputs.rates.binary_search_by_key(&payment.ex_date, |rate| rate.ex_date).is_err()
    })
}

/// Regular and special cash per share of the last 12 months. `None` if a payment is not known in the currency
/// `currency`.
fn total_paid(payments: &[Payment<'_>], as_of: NaiveDate, currency: &str) -> Option<Decimal> {
    let start = months_before(as_of, 12);
    let recent = payments.iter().rev().take_while(|payment| payment.ex_date > start);
    let mut total = Decimal::ZERO;
    for payment in recent.filter(|payment| payment.class.in_ttm_total() && payment.ex_date <= as_of) {
        total = total.checked_add(payment.amount_in(currency)?)?;
    }
    Some(remove_division_error(total))
}

/// Regular payment of an ex-date that has rows in the dividend currency and in the currency of the prices.
fn translated<'i>(inputs: &'i MetricInputs<'_>, ex_date: NaiveDate) -> Option<&'i Payment<'i>> {
    let from = inputs.payments().partition_point(|payment| payment.ex_date < ex_date);
    let mut day = inputs.payments()[from..].iter().take_while(|payment| payment.ex_date == ex_date);
    day.find(|payment| payment.class.is_regular() && payment.declared.is_some())
}

/// Rate of the payment from which the forward dividend is computed: its amount in the currency of the prices, divided by
/// its amount in the dividend currency. `None` if the payment has only one row.
fn forward_rate(inputs: &MetricInputs<'_>, forward: &ForwardDividend) -> Option<Decimal> {
    let rate = inputs.rates.iter().rev().nth(usize::from(forward.latest_unusual))?;
    let payment = translated(inputs, rate.ex_date)?;
    quotient(payment.adjusted, payment.declared?)
}

/// Regular dividends of the last 12 months in the currency of the prices. `None` if a payment has no row in it.
fn priced_ttm(inputs: &MetricInputs<'_>) -> Option<Decimal> {
    let paid = trailing_rates(&inputs.rates, inputs.as_of).iter();
    let total = paid.map(|rate| Some(inputs.own_regular_part(translated(inputs, rate.ex_date)?)));
    total.sum::<Option<Decimal>>().map(remove_division_error)
}

fn flag_income(inputs: &MetricInputs<'_>, income: &IncomeMetrics, flags: &mut Flags) {
    let is_unknown = income.status == DividendState::Unknown;
    flags.set_if(Flag::NoDividendFeed, is_unknown && !inputs.completeness.carries_dividends);
    flags.set_if(Flag::CurrencyMismatch, income.mismatch || lacks_rate(inputs, income));
    flags.set_if(Flag::YieldSuspect, is_suspect(income.dividend_yield, &inputs.rules.safety));
    flags.set_if(Flag::LatestAmountUnusual, income.forward.latest_unusual);
    let partial = is_partial_year(inputs);
    flags.set_if(Flag::TtmIncomplete, partial);
    // In a partial year, fewer payments than usual are normal. More payments than usual are always flagged.
    let (count, expected) = (income.ttm_payment_count, inputs.payments_per_year());
    let unusual =
        expected.is_some_and(|expected| is_unusual_count(count, expected) && (count > expected || !partial));
    flags.set_if(Flag::TtmPaymentCountUnusual, unusual && income.status == DividendState::Active);
}

/// True if the trailing yield is unknown, because a payment of the last 12 months has no row in the currency of the prices.
fn lacks_rate(inputs: &MetricInputs<'_>, income: &IncomeMetrics) -> bool {
    let is_foreign = !inputs.rates.is_empty() && inputs.dividend_currency != inputs.currency;
    is_foreign && income.dps_ttm.is_some() && income.yield_ttm.is_none()
}

/// True if dividends of the last 12 months may be missing, because the security or its data are newer. If the IPO date
/// is known, it decides; otherwise the first bar or ex-date.
fn is_partial_year(inputs: &MetricInputs<'_>) -> bool {
    let window = months_before(inputs.as_of, 12);
    if let Some(listed) = inputs.security().and_then(|security| security.ipo_date) {
        return listed > window;
    }
    let Some(first) = inputs.rates.first() else { return false };
    let first_ex_date = inputs.payments().first().map_or(first.ex_date, |payment| payment.ex_date);
    let series = inputs.series();
    match (!series.bars.is_empty()).then(|| series.date(0)).filter(|bar| *bar < first_ex_date) {
        Some(first_bar) => first_bar > window,
        None => {
            let period = inputs.payments_per_year().map_or(0, |payments| 365 / i64::from(payments.max(1)));
            (first_ex_date - window).num_days() > period
        }
    }
}
