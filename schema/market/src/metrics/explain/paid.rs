//! Explanations of income metrics: trailing and forward dividends, yields, payment frequency, next payment.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::entry::Unit::{Amount, Percent, Price, Unrounded};
use super::entry::{ExplainedMetric, ExplainedObservation, entry, number, window};
use super::observations::{of_dividends, of_payment, of_price, of_security};
use crate::dated_text::{DatedText, Terms, dated_text, undated};
use crate::metrics::arithmetic;
use crate::metrics::calendar::months_before;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::frequency::NEWEST_EX_DATES;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::dividends::yields::UNEQUAL_HALVES;
use crate::metrics::exchange_rates::Rate;
use crate::metrics::merge::Payment;
use crate::row::{DividendState, Flag, ForwardBasis, YieldBasis};

pub(crate) fn explain_income(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    [trailing(computed), forward(computed), yields(computed), rhythm(computed)].concat()
}

fn trailing(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let (after, through) = window(computed);
    let regular = of_dividends(computed, after, through, DividendClass::is_regular);
    let all = of_dividends(computed, after, through, DividendClass::in_ttm_total);
    let sum = |what: &'static str, counts: fn(DividendClass) -> bool| {
        let payments = computed.inputs.payments().iter();
        let counted = payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p.class));
        let regular = counts(DividendClass::Regular) && !counts(DividendClass::Special);
        let currency = &computed.inputs.dividend_currency;
        let part = |p: &Payment<'_>| match regular {
            true => computed.inputs.regular_part(p),
            false => p.amount_in(currency).unwrap_or(p.adjusted),
        };
        let terms = counted.map(|p| (p.ex_date, format!("{} ({})", number(Some(part(p))), p.ex_date)));
        let terms: Vec<_> = terms.collect();
        let none = if terms.is_empty() { "0" } else { "" };
        dated_text!(
            "sum of {} amounts with ex-date in {}, adjusted for splits: {}{}",
            what,
            span(after, through),
            Terms::days(" + ", terms),
            none
        )
    };
    let count = dated_text!("number of regular ex-dates in {}", span(after, through));
    let listed = computed.inputs.security().and_then(|security| security.ipo_date);
    let first = computed.inputs.rates.first().map(|rate| rate.ex_date);
    let reach = if computed.flags.has(Flag::TtmIncomplete) { " do not reach" } else { " reach" };
    let complete = dated_text!(
        "the data{} back to {}: listed {}, first regular ex-date {}",
        reach,
        after,
        listed,
        first
    );
    vec![
        entry("dps_ttm", "R7", Amount, sum("regular", DividendClass::is_regular), regular.clone()),
        entry("dps_ttm_total", "R7", Amount, sum("regular and special", DividendClass::in_ttm_total), all),
        entry("ttm_payment_count", "R7", Unrounded, count, regular),
        entry("ttm_complete", "R7", Unrounded, complete, of_security(computed)),
    ]
}

/// Interval that excludes its first day and includes its last.
fn span(after: NaiveDate, through: NaiveDate) -> DatedText {
    dated_text!("({}, {}]", after, through)
}

fn forward(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let per_year = computed.inputs.payments_per_year();
    let latest = newest(computed, 2);
    let completeness = &computed.inputs.completeness;
    let unknown = match (completeness.carries_dividends, completeness.missing.first()) {
        _ if computed.income.status != DividendState::Unknown => DatedText::default(),
        (_, Some(step)) => {
            let factor = step.factor.round_dp(6).normalize();
            let last = Terms::of_day(step.ex_date, format!("by {factor} up to {}", step.ex_date));
            let source = undated(&step.observation.source);
            dated_text!("; adjusted closes of {} step {} without a payment", source, last)
        }
        (false, None) => "; no source that covers it carries dividends".into(),
        (true, None) => DatedText::default(),
    };
    let status = dated_text!(
        "{}: last regular ex-date {}, {} payments a year{}",
        computed.income.status.as_str(),
        computed.inputs.ex_dates.last().copied(),
        per_year.map_or_else(|| undated("unknown"), undated),
        unknown
    );
    let basis = match computed.income.forward.basis {
        ForwardBasis::Declared => "declared: the ex-date of the latest amount is ahead",
        ForwardBasis::LastTimesFrequency => {
            "last_times_frequency: the ex-date of the latest amount has passed"
        }
        ForwardBasis::None => "none: the security has no forward dividend",
    };
    vec![
        entry("dps_forward", "R8", Amount, indicated(computed), latest.clone()),
        entry("forward_basis", "R8", Unrounded, basis, latest.clone()),
        entry("dividend_status", "R6", Unrounded, status, [latest.clone(), of_security(computed)].concat()),
        entry("next", "R19", Unrounded, next(computed), latest),
    ]
}

fn indicated(computed: &ComputedMetrics<'_>) -> DatedText {
    let (forward, rates) = (&computed.income.forward, &computed.inputs.rates);
    let rules = &computed.inputs.rules.forward;
    let last = rates.iter().rev().nth(usize::from(forward.latest_unusual));
    match (forward.amount, last, computed.inputs.payments_per_year()) {
        (None, _, _) => {
            "null: a fund, a delisted security or an irregular payer has no forward dividend".into()
        }
        (Some(value), Some(last), Some(n)) if !value.is_zero() => {
            let amount = format!("{} ({})", number(Some(last.amount)), last.ex_date);
            let amount = Terms::of_day(last.ex_date, amount);
            if arithmetic::remove_division_error(last.amount.saturating_mul(n.into())) != value {
                return dated_text!(
                    "latest {} + the amount before it, because interim and final dividends differ by more than {} %",
                    amount,
                    undated(UNEQUAL_HALVES)
                );
            }
            let which = if forward.latest_unusual {
                dated_text!(
                    "previous regular amount, because the latest is unconfirmed and at least {} times the median before it: ",
                    undated(rules.unusual_factor)
                )
            } else {
                "latest regular amount declared ".into()
            };
            dated_text!("{}{} x {} payments a year", which, amount, undated(n))
        }
        (Some(_), _, _) => {
            dated_text!("the payer is {}, so the forward dividend", computed.income.status.as_str())
        }
    }
}

fn next(computed: &ComputedMetrics<'_>) -> DatedText {
    match (computed.upcoming.declared, computed.upcoming.projections.first()) {
        (Some(index), _) => dated_text!(
            "earliest declared ex-date from {} on: {}",
            computed.inputs.as_of,
            computed.inputs.payments()[index].ex_date
        ),
        (None, _) if computed.flags.has(Flag::Overdue) => "the expected ex-date has passed: overdue".into(),
        (None, Some(expected)) => {
            dated_text!(
                "same slot of last year + 12 months, rolled forward to a session: {}",
                expected.ex_date
            )
        }
        (None, None) => "nothing declared and nothing to expect".into(),
    }
}

fn yields(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let income = &computed.income;
    let (after, through) = window(computed);
    let price = price_text(computed);
    let (ttm, forward) = (TTM, FORWARD);
    let forward_dps = income.forward.amount;
    let total = "regular and special dividends of 12 months";
    let basis = match income.yield_basis {
        Some(YieldBasis::Forward) => "forward, since the security has a forward dividend",
        Some(YieldBasis::Ttm) => "ttm, since the security has no forward dividend",
        None => "null: the security has no yield",
    };
    let with_price = |payments: Vec<ExplainedObservation>| [payments, of_price(computed)].concat();
    let regular = with_price(of_dividends(computed, after, through, DividendClass::is_regular));
    let all = with_price(of_dividends(computed, after, through, DividendClass::in_ttm_total));
    let latest = with_price(newest(computed, 2));
    let rate = if income.forward.amount.is_some() { latest.clone() } else { regular.clone() };
    let mut entries = vec![
        entry("price", "R9", Price, price.clone(), of_price(computed)),
        entry("price_date", "R21", Unrounded, price, of_price(computed)),
        entry("dividend_yield", "R9", Percent, headline(computed), rate),
        entry("yield_basis", "R9", Unrounded, basis, latest.clone()),
        entry(
            "yield_ttm",
            "R7",
            Percent,
            over_price(computed, ttm, income.dps_ttm, income.yield_ttm),
            regular,
        ),
        entry(
            "yield_ttm_total",
            "R7",
            Percent,
            over_price(computed, total, income.dps_ttm_total, income.yield_ttm_total),
            all,
        ),
        entry(
            "yield_forward",
            "R8",
            Percent,
            over_price(computed, forward, forward_dps, income.yield_forward),
            latest,
        ),
    ];
    let five_years = of_dividends(computed, months_before(through, 72), through, DividendClass::is_regular);
    for (metric, what) in [("yield_5y_avg", "mean"), ("yield_5y_high", "highest"), ("yield_5y_low", "lowest")]
    {
        let formula = match income.yield_range {
            Some(range) => dated_text!(
                "{} trailing yield at {} month ends, each from the 12 months before it",
                what,
                undated(range.month_ends)
            ),
            None if income.mismatch || income.status == DividendState::Unknown => headline(computed),
            None => "null: fewer than 12 month ends have a close and 12 months of dividends".into(),
        };
        entries.push(entry(metric, "R7", Percent, formula, five_years.clone()));
    }
    entries
}

/// Text for the price in a formula: the session of the latest close, and the raw close if later splits changed it.
fn price_text(computed: &ComputedMetrics<'_>) -> DatedText {
    let Some(price) = computed.inputs.price else { return "null: no close is known".into() };
    let raw = computed.inputs.series().close(price.index);
    if raw == price.close {
        return dated_text!("raw close of {}", price.date);
    }
    let close = Terms::of_day(price.date, format!("{} of {}", number(Some(raw)), price.date));
    dated_text!("raw close {}, adjusted for the splits up to {}", close, computed.inputs.as_of)
}

/// Names of dividends in formulas of yields.
const TTM: &str = "dividends of 12 months";
const FORWARD: &str = "forward dividend";

/// Formula of the dividend yield `served` as text: `amount` / latest close x 100. `dividend` is the name of the amount in
/// the text, for example `forward dividend`.
fn over_price(
    computed: &ComputedMetrics<'_>,
    dividend: &'static str,
    amount: Option<Decimal>,
    served: Option<Decimal>,
) -> DatedText {
    let (paid, priced) = (&computed.inputs.dividend_currency, &computed.inputs.currency);
    let is_foreign = paid != priced && !computed.inputs.rates.is_empty();
    let is_foreign = is_foreign || computed.income.mixed;
    if is_foreign && served.is_none() {
        return dated_text!("null: dividends in {}, prices in {}", undated(paid), undated(priced));
    }
    if is_foreign {
        return converted(computed, dividend, amount);
    }
    match (amount, computed.inputs.price) {
        (None, _) => dated_text!("null: no {}", dividend),
        (Some(_), None) => "null: no close is known".into(),
        (Some(amount), Some(price)) => {
            let close = format!("close {} of {}", number(Some(price.close)), price.date);
            let close = Terms::of_day(price.date, close);
            dated_text!("{} {} / {} x 100", dividend, number(Some(amount)), close)
        }
    }
}

/// Formula of the yield of dividends in another currency than the prices: the forward dividend at the rate of the close,
/// or each payment at its own rate (R42). Payments with rows in both currencies need no rate (R39).
fn converted(computed: &ComputedMetrics<'_>, dividend: &'static str, amount: Option<Decimal>) -> DatedText {
    let (paid, priced) = (&computed.inputs.dividend_currency, &computed.inputs.currency);
    let close = match computed.inputs.price {
        Some(price) => {
            let close = format!("close {} of {}", number(Some(price.close)), price.date);
            dated_text!("{}", Terms::of_day(price.date, close))
        }
        None => "close".into(),
    };
    let rate = computed.inputs.rate_of_price(paid, priced);
    let has_rates = match dividend {
        FORWARD => rate.is_some(),
        _ => computed.inputs.payments().iter().any(|payment| payment.rate.is_some()),
    };
    if dividend != FORWARD && has_rates {
        let counts = if dividend == TTM { DividendClass::is_regular } else { DividendClass::in_ttm_total };
        return dated_text!("{}: ({}) / {} x 100", dividend, priced_terms(computed, counts), close);
    }
    let (units, twice) = (dated_text!("{} per {}", undated(priced), undated(paid)), !has_rates);
    let rate = match (rate, computed.income.forward_rate) {
        (Some(rate), _) => {
            dated_text!(" x {} {}", Terms::of_day(rate.date, rate_text(&rate)), units)
        }
        (None, Some(rate)) if dividend == FORWARD => {
            let rate = rate.round_sf(10).unwrap_or(rate).normalize();
            dated_text!(" x {} {}", undated(rate), units)
        }
        _ => dated_text!(" {}, paid in {} too", undated(paid), undated(priced)),
    };
    let twice = if twice { "; R39: the payments have rows in both currencies" } else { "" };
    dated_text!("{} {}{} / {} x 100{}", dividend, number(amount), rate, close, twice)
}

/// Payments of the last 12 months, each with its rate to the currency of the prices.
fn priced_terms(computed: &ComputedMetrics<'_>, counts: fn(DividendClass) -> bool) -> Terms {
    let (after, through) = window(computed);
    let payments = computed.inputs.payments().iter();
    let counted = payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p.class));
    let terms = counted.map(|payment| {
        let part = match counts(DividendClass::Special) {
            true => payment.adjusted,
            false => computed.inputs.own_regular_part(payment),
        };
        let amount = format!("{} {}", number(Some(part)), payment.observation.record.currency);
        let rate = payment.rate.map(|rate| format!(" x {}", rate_text(&rate))).unwrap_or_default();
        (payment.ex_date, format!("{amount}{rate}"))
    });
    Terms::days(" + ", terms)
}

/// Rate with its day and sources, for example `0.8 (ecb 2024-06-26)`.
fn rate_text(rate: &Rate<'_>) -> String {
    let through = rate.through.map(|hub| format!(", through {hub}")).unwrap_or_default();
    format!("{} ({} {}{through})", rate.value, rate.source(), rate.date)
}

/// Formula of the headline yield, as text.
fn headline(computed: &ComputedMetrics<'_>) -> DatedText {
    let income = &computed.income;
    match (income.status, income.forward.amount) {
        (DividendState::Unknown, _) => "null: the dividends are unknown".into(),
        (DividendState::Active, Some(_)) if !income.mixed => {
            over_price(computed, FORWARD, income.forward.amount, income.yield_forward)
        }
        (DividendState::Active, _) => over_price(computed, TTM, income.dps_ttm, income.yield_ttm),
        (status, _) => match income.dividend_yield {
            Some(_) => dated_text!("the payer is {}, so the yield", status.as_str()),
            None => over_price(computed, TTM, income.dps_ttm, income.yield_ttm),
        },
    }
}

fn rhythm(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let mut newest_dates: Vec<(NaiveDate, String)> = computed
        .inputs
        .ex_dates
        .iter()
        .rev()
        .take(NEWEST_EX_DATES)
        .map(|date| (*date, date.to_string()))
        .collect();
    newest_dates.reverse();
    let source = computed.inputs.rhythm.source.map_or("nothing", |source| source.as_str());
    let formula = dated_text!(
        "{} ({}); newest regular ex-dates {}",
        computed.inputs.rhythm.frequency.as_str(),
        source,
        Terms::days(", ", newest_dates)
    );
    let observations = newest(computed, NEWEST_EX_DATES);
    vec![
        entry("frequency", "R5", Unrounded, formula.clone(), observations.clone()),
        entry("payments_per_year", "R5", Unrounded, formula, observations),
    ]
}

/// Observations of the `count` newest regular payments. Declared future payments are included.
fn newest(computed: &ComputedMetrics<'_>, count: usize) -> Vec<ExplainedObservation> {
    let regular = computed.inputs.payments().iter().rev().filter(|payment| payment.class.is_regular());
    regular.take(count).map(|payment| of_payment(computed, payment)).collect()
}
