//! Income metrics: dividend status, trailing and forward dividends, yields. Amounts of two currencies are
//! never added (R4).
//!
//! Yields of dividends in another currency than the prices need a rate: an exchange rate (R42), or that of a payment with
//! rows in both currencies (R39). The trailing yield converts each payment at its own rate, the forward yield at the rate
//! on the day of the latest close. Without a rate, a yield is null.
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
    ForwardDividend, HeadlineInput, RANGE_MONTHS, RegularDividend, YieldRange, forward_dividend,
    headline_yield, is_unusual_count, sum, trailing_rates, yield_range,
};
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
    let dps_ttm_total = if known {
        total_paid(inputs.payments(), as_of, |payment| payment.amount_in(&inputs.dividend_currency))
    } else {
        None
    };
    let forward = if inputs.is_fund() || !inputs.is_listed || is_held {
        ForwardDividend::NONE
    } else {
        forward_dividend(&inputs.rates, inputs.payments_per_year(), status, as_of, &inputs.rules.forward)
    };
    let is_foreign = !inputs.rates.is_empty() && inputs.dividend_currency != inputs.currency;
    let forward_rate = if is_foreign { forward_rate(inputs, &forward) } else { Some(Decimal::ONE) };
    let needs_rates = is_foreign || mixed;
    let priced_ttm =
        if needs_rates && known { inputs.trailing_dividends_in(&inputs.currency) } else { dps_ttm };
    let priced_total = if known {
        total_paid(inputs.payments(), as_of, |payment| {
            payment.in_price_currency(payment.adjusted, &inputs.currency)
        })
    } else {
        None
    };
    let yield_of = |dividend: Option<Decimal>| percent_of(dividend?, inputs.close()?);
    let yield_ttm = yield_of(priced_ttm);
    // In a year with payments in several currencies, the forward dividend may be in a currency of the past.
    let priced_forward = forward.amount.filter(|_| !mixed).zip(forward_rate);
    let yield_forward = yield_of(priced_forward.and_then(|(amount, rate)| amount.checked_mul(rate)));
    let has_forward = forward.amount.is_some() && !mixed;
    let is_known = if has_forward { forward_rate.is_some() } else { priced_ttm.is_some() || !needs_rates };
    let mismatch = !inputs.rates.is_empty() && !is_known;
    let (dividend_yield, yield_basis) =
        headline_yield(&HeadlineInput { status, yield_forward, yield_ttm, has_forward, mismatch });
    let (series, month) = (inputs.series(), last_month(as_of));
    let yield_range = match priced_rates(inputs, is_foreign).filter(|_| !mismatch && known) {
        Some(rates) => yield_range(&rates, &series, month, as_of),
        None => None,
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
        yield_ttm_total: yield_of(priced_total),
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

/// Regular and special cash per share of the last 12 months. `None` if the function `amount` has none of a payment.
fn total_paid(
    payments: &[Payment<'_>],
    as_of: NaiveDate,
    amount: impl Fn(&Payment<'_>) -> Option<Decimal>,
) -> Option<Decimal> {
    let start = months_before(as_of, 12);
    let recent = payments.iter().rev().take_while(|payment| payment.ex_date > start);
    let mut total = Decimal::ZERO;
    for payment in recent.filter(|payment| payment.class.in_ttm_total() && payment.ex_date <= as_of) {
        total = total.checked_add(amount(payment)?)?;
    }
    Some(remove_division_error(total))
}

/// Regular payment of an ex-date that has rows in the dividend currency and in the currency of the prices.
fn translated<'i>(inputs: &'i MetricInputs<'_>, ex_date: NaiveDate) -> Option<&'i Payment<'i>> {
    let from = inputs.payments().partition_point(|payment| payment.ex_date < ex_date);
    let mut day = inputs.payments()[from..].iter().take_while(|payment| payment.ex_date == ex_date);
    day.find(|payment| payment.class.is_regular() && payment.declared.is_some())
}

/// Rate of the forward dividend: that of the day of the latest close (R42). Without one, that of the payment from which the
/// forward dividend is computed: its amount in the currency of the prices, divided by its amount in the dividend
/// currency. `None` if the payment has only one row.
fn forward_rate(inputs: &MetricInputs<'_>, forward: &ForwardDividend) -> Option<Decimal> {
    if let Some(rate) = inputs.rate_of_price(&inputs.dividend_currency, &inputs.currency) {
        return Some(rate.value);
    }
    let rate = inputs.rates.iter().rev().nth(usize::from(forward.latest_unusual))?;
    let payment = translated(inputs, rate.ex_date)?;
    quotient(payment.adjusted, payment.declared?)
}

/// Regular dividends in the currency of the prices, for the range of yields. `None` if a payment of its years has no rate.
fn priced_rates(inputs: &MetricInputs<'_>, is_foreign: bool) -> Option<Vec<RegularDividend>> {
    if !is_foreign {
        return Some(inputs.rates.clone());
    }
    let first = months_before(inputs.as_of, RANGE_MONTHS + 12);
    let mut priced: Vec<RegularDividend> = Vec::new();
    for payment in
        inputs.payments().iter().filter(|payment| payment.class.is_regular() && payment.ex_date >= first)
    {
        let amount = inputs.priced_part(payment)?;
        match priced.last_mut().filter(|before| before.ex_date == payment.ex_date) {
            Some(before) => before.amount = before.amount.checked_add(amount)?,
            None => priced.push(RegularDividend { ex_date: payment.ex_date, amount }),
        }
    }
    Some(priced)
}

fn flag_income(inputs: &MetricInputs<'_>, income: &IncomeMetrics, flags: &mut Flags) {
    let is_unknown = income.status == DividendState::Unknown;
    flags.set_if(Flag::NoDividendFeed, is_unknown && !inputs.completeness.carries_dividends);
    let lacks_rate = income.mismatch || lacks_rate(inputs, income);
    flags.set_if(Flag::CurrencyMismatch, lacks_rate);
    flags.set_if(Flag::FxMissing, lacks_rate);
    flags.set_if(Flag::Converted, uses_rate(inputs, income));
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

/// True if the headline yield used an exchange rate.
fn uses_rate(inputs: &MetricInputs<'_>, income: &IncomeMetrics) -> bool {
    let is_forward = income.yield_basis == Some(YieldBasis::Forward);
    let has_rate = match is_forward {
        true => inputs.rate_of_price(&inputs.dividend_currency, &inputs.currency).is_some(),
        false => inputs.trailing_payments().any(|payment| payment.rate.is_some()),
    };
    income.dividend_yield.is_some_and(|headline| !headline.is_zero()) && has_rate
}

/// True if the trailing yield is unknown, because a payment of the last 12 months has no rate.
fn lacks_rate(inputs: &MetricInputs<'_>, income: &IncomeMetrics) -> bool {
    let is_foreign =
        !inputs.rates.is_empty() && (income.mixed || inputs.dividend_currency != inputs.currency);
    let has_paid = income.dps_ttm.is_some() || income.mixed;
    is_foreign && has_paid && inputs.trailing_dividends_in(&inputs.currency).is_none()
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
