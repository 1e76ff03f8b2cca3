//! What is paid, explained: trailing and indicated dividends, yields, rhythm, what comes next.

use super::entry::Rounding::{Amount, Exact, Percent};
use super::entry::{ExplainedMetric, ExplainedObservation};
use super::entry::{date, entry, number, window};
use super::observations::{of_dividends, of_payment, of_price, of_security};
use crate::measure::arithmetic;
use crate::measure::class::Class;
use crate::measure::measured::Measured;
use crate::measure::yields::months_before;
use crate::row::Flag;

pub(super) fn explained(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    [trailing(measured), forward(measured), yields(measured), rhythm(measured)].concat()
}

fn trailing(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let (after, through) = window(measured);
    let regular = of_dividends(measured, after, through, Class::is_regular);
    let all = of_dividends(measured, after, through, Class::in_ttm_total);
    let sum = |what: &str, counts: fn(Class) -> bool| {
        let payments = measured.basis.payments().iter();
        let counted = payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p.class));
        let terms: Vec<String> =
            counted.map(|p| format!("{} ({})", number(Some(p.adjusted)), p.ex_date)).collect();
        let terms = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
        format!("sum of {what} amounts with ex-date in ({after}, {through}] on today's share basis: {terms}")
    };
    let count = format!("number of regular ex-dates in ({after}, {through}]");
    let listed = measured.basis.security().and_then(|security| security.ipo_date);
    let first = measured.basis.rates.first().map(|rate| rate.ex_date);
    let complete = format!(
        "whether the data reach back to {after}: listed {}, first regular ex-date {}",
        date(listed),
        date(first)
    );
    vec![
        entry("dps_ttm", "R7", Amount, sum("regular", Class::is_regular), regular.clone()),
        entry("dps_ttm_total", "R7", Amount, sum("regular and special", Class::in_ttm_total), all),
        entry("ttm_payment_count", "R7", Exact, count, regular),
        entry("ttm_complete", "R7", Exact, complete, of_security(measured)),
    ]
}

fn forward(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let per_year = measured.basis.payments_per_year();
    let latest = newest(measured, 2);
    let status = format!(
        "{}: last regular ex-date {}, {} payments a year",
        measured.income.status,
        date(measured.basis.ex_dates.last().copied()),
        per_year.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
    );
    let basis =
        format!("{}: whether the ex-date of the latest amount lies ahead", measured.income.forward.basis);
    vec![
        entry("dps_forward", "R8", Amount, indicated(measured), latest.clone()),
        entry("forward_basis", "R8", Exact, basis, latest.clone()),
        entry("dividend_status", "R6", Exact, status, [latest.clone(), of_security(measured)].concat()),
        entry("next", "R19", Exact, next(measured), latest),
    ]
}

fn indicated(measured: &Measured<'_>) -> String {
    let (forward, rates) = (&measured.income.forward, &measured.basis.rates);
    let rules = &measured.basis.rules.forward;
    let last = rates.iter().rev().nth(usize::from(forward.latest_unusual));
    match (forward.amount, last, measured.basis.payments_per_year()) {
        (None, _, _) => "no forward figure: a fund, a delisted security or an irregular payer".to_owned(),
        (Some(value), Some(last), Some(n)) if !value.is_zero() => {
            let amount = number(Some(last.amount));
            if arithmetic::settle(last.amount.saturating_mul(n.into())) == value {
                let which = if forward.latest_unusual {
                    format!(
                        "regular amount before the latest, which is at least {} times the median before it and unconfirmed,",
                        rules.unusual_factor
                    )
                } else {
                    "latest regular amount declared".to_owned()
                };
                format!("{which} {amount} ({}) x {n} payments a year", last.ex_date)
            } else {
                format!(
                    "latest {amount} ({}) + the one before it: interim and final alternate by more than {} %",
                    last.ex_date, rules.unequal_halves
                )
            }
        }
        (Some(_), _, _) => format!("0, since the payer is {}", measured.income.status),
    }
}

fn next(measured: &Measured<'_>) -> String {
    match (measured.upcoming.declared, measured.upcoming.projections.first()) {
        (Some(index), _) => {
            format!(
                "earliest declared ex-date from {} on: {}",
                measured.basis.as_of,
                measured.basis.payments()[index].ex_date
            )
        }
        (None, _) if measured.flags.has(Flag::Overdue) => {
            "the expected ex-date has passed: overdue".to_owned()
        }
        (None, Some(expected)) => {
            format!("same slot of last year + 12 months, rolled forward to a session: {}", expected.ex_date)
        }
        (None, None) => "nothing declared and nothing to expect".to_owned(),
    }
}

fn yields(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let income = &measured.income;
    let (after, through) = window(measured);
    let close = number(measured.basis.close());
    let over_price = |amount| {
        if income.mismatch {
            let (paid, priced) = (&measured.basis.dividend_currency, &measured.basis.currency);
            format!("null: dividends in {paid}, prices in {priced}")
        } else {
            format!("{} / {close} x 100", number(amount))
        }
    };
    let price = match measured.basis.price {
        Some(price) => {
            format!("raw close of {}, carried through splits to {}", price.date, measured.basis.as_of)
        }
        None => "no price known".to_owned(),
    };
    let basis = income.yield_basis.map_or_else(|| "null".to_owned(), |basis| basis.to_string());
    let headline = format!("headline: the {basis} yield, status {}", income.status);
    let which = "forward where a forward figure exists, else ttm";
    let with_price = |payments: Vec<ExplainedObservation>| [payments, of_price(measured)].concat();
    let regular = with_price(of_dividends(measured, after, through, Class::is_regular));
    let all = with_price(of_dividends(measured, after, through, Class::in_ttm_total));
    let latest = with_price(newest(measured, 2));
    let mut entries = vec![
        entry("price", "R9", Amount, price.clone(), of_price(measured)),
        entry("price_date", "R21", Exact, price, of_price(measured)),
        entry("dividend_yield", "R9", Percent, headline, [regular.clone(), latest.clone()].concat()),
        entry("yield_basis", "R9", Exact, which, latest.clone()),
        entry("yield_ttm", "R7", Percent, over_price(income.dps_ttm), regular),
        entry("yield_ttm_total", "R7", Percent, over_price(income.dps_ttm_total), all),
        entry("yield_forward", "R8", Percent, over_price(income.forward.amount), latest),
    ];
    let five_years = of_dividends(measured, months_before(through, 72), through, Class::is_regular);
    for (metric, what) in [("yield_5y_avg", "mean"), ("yield_5y_high", "highest"), ("yield_5y_low", "lowest")]
    {
        let formula = format!(
            "{what} of the trailing yields at the last 60 month ends whose 12 months the history covers; null under 12"
        );
        entries.push(entry(metric, "R7", Percent, formula, five_years.clone()));
    }
    entries
}

fn rhythm(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let looked_at = measured.basis.rules.frequency.newest_ex_dates;
    let mut newest_dates: Vec<String> =
        measured.basis.ex_dates.iter().rev().zip(0..looked_at).map(|(date, _)| date.to_string()).collect();
    newest_dates.reverse();
    let source = measured.basis.rhythm.source.map_or("nothing", |source| source.as_str());
    let formula = format!(
        "{} from {source}; newest regular ex-dates {}",
        measured.basis.rhythm.frequency,
        newest_dates.join(", ")
    );
    let observations = newest(measured, looked_at);
    vec![
        entry("frequency", "R5", Exact, formula.clone(), observations.clone()),
        entry("payments_per_year", "R5", Exact, formula, observations),
    ]
}

/// The newest regular payments, declared ones included.
fn newest(measured: &Measured<'_>, count: i64) -> Vec<ExplainedObservation> {
    let regular = measured.basis.payments().iter().rev().filter(|payment| payment.class.is_regular());
    regular.zip(0..count).map(|(payment, _)| of_payment(payment)).collect()
}
