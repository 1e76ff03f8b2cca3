//! Each metric's formula with its values.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::observations::{of_fundamentals, of_payment, of_payments, of_price, of_security};
use super::{ExplainedMetric, ExplainedObservation};
use crate::measure::arithmetic;
use crate::measure::measured::Measured;
use crate::measure::yields::months_before;
use crate::row::Metrics;

const AMOUNT: &str = "6 places, half away from zero";
const PERCENT: &str = "4 places, half away from zero";
const NONE: &str = "none";

/// Explains the metrics, in the order of the row.
pub(super) fn explained(measured: &Measured<'_>, metrics: &Metrics) -> Vec<ExplainedMetric> {
    let served = serde_json::to_value(metrics).unwrap_or_default();
    let value = |name: &str| served.get(name).filter(|value| !value.is_null()).map(plain);
    let mut explained = trailing(measured);
    explained.extend(forward(measured));
    explained.extend(yields(measured));
    explained.extend(rhythm(measured));
    explained.extend(growth(measured));
    explained.extend(company(measured));
    explained.extend(market(measured));
    for metric in &mut explained {
        metric.value = value(&metric.metric);
    }
    explained
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn entry(
    metric: &str,
    rule: &str,
    rounding: &str,
    formula: String,
    observations: Vec<ExplainedObservation>,
) -> ExplainedMetric {
    ExplainedMetric {
        metric: metric.to_owned(),
        value: None,
        rule: rule.to_owned(),
        formula,
        rounding: rounding.to_owned(),
        observations,
    }
}

fn number(value: Option<Decimal>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| arithmetic::factor(value).to_string())
}

fn window(measured: &Measured<'_>) -> (NaiveDate, NaiveDate) {
    (months_before(measured.basis.as_of, 12), measured.basis.as_of)
}

fn trailing(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let (after, through) = window(measured);
    let regular = of_payments(measured, after, through, |payment| payment.class.is_regular());
    let all = of_payments(measured, after, through, |payment| payment.class.in_ttm_total());
    let amounts = |counts: &dyn Fn(crate::measure::class::Class) -> bool| {
        let payments = measured.basis.payments().iter();
        let counted = payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p.class));
        let terms: Vec<String> =
            counted.map(|p| format!("{} ({})", number(Some(p.adjusted)), p.ex_date)).collect();
        if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
    };
    let sum = |what: &str, terms: String| {
        format!("{what} amounts with ex-date in ({after}, {through}] on today's share basis: {terms}")
    };
    vec![
        entry(
            "dps_ttm",
            "R7",
            AMOUNT,
            sum("sum of regular", amounts(&|class| class.is_regular())),
            regular.clone(),
        ),
        entry(
            "dps_ttm_total",
            "R7",
            AMOUNT,
            sum("sum of regular and special", amounts(&|class| class.in_ttm_total())),
            all,
        ),
        entry(
            "ttm_payment_count",
            "R7",
            NONE,
            format!("number of regular ex-dates in ({after}, {through}]"),
            regular,
        ),
    ]
}

fn forward(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let last = measured.basis.rates.last();
    let per_year = measured.basis.payments_per_year();
    let formula = match (measured.income.forward.amount, last, per_year) {
        (None, _, _) => "no forward figure: a fund, a delisted security or an irregular payer".to_owned(),
        (Some(value), Some(last), Some(n)) if !value.is_zero() => {
            let amount = number(Some(last.amount));
            if arithmetic::settle(last.amount.saturating_mul(n.into())) == value {
                format!("latest regular amount declared {amount} ({}) x {n} payments a year", last.ex_date)
            } else {
                format!(
                    "latest {amount} ({}) + the one before it: the halves differ by more than 10 %",
                    last.ex_date
                )
            }
        }
        (Some(_), _, _) => format!("0, since the payer is {}", measured.income.status),
    };
    let latest = measured.basis.payments().iter().rev().filter(|payment| payment.class.is_regular());
    let latest: Vec<ExplainedObservation> = latest.take(2).map(of_payment).collect();
    let status = format!(
        "{}: last regular ex-date {}, {} payments a year",
        measured.income.status,
        last.map_or_else(|| "none".to_owned(), |rate| rate.ex_date.to_string()),
        per_year.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
    );
    vec![
        entry("dps_forward", "R8", AMOUNT, formula, latest.clone()),
        entry("forward_basis", "R8", NONE, format!("{}", measured.income.forward.basis), latest.clone()),
        entry("dividend_status", "R6", NONE, status, latest.clone()),
        entry("next", "R19", NONE, next(measured), latest),
    ]
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
        (None, _) if measured.flags.contains("overdue") => {
            "the expected ex-date has passed: overdue".to_owned()
        }
        (None, Some(expected)) => {
            format!("same slot of last year + 12 months, rolled forward to a session: {expected}")
        }
        (None, None) => "nothing declared and nothing to expect".to_owned(),
    }
}

fn yields(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let price = number(measured.basis.close());
    let over_price = |amount: Option<Decimal>| {
        if measured.income.mismatch {
            format!(
                "null: dividends in {}, prices in {}",
                measured.basis.dividend_currency, measured.basis.currency
            )
        } else {
            format!("{} / {price} x 100", number(amount))
        }
    };
    let basis = measured.income.yield_basis.map_or_else(|| "null".to_owned(), |basis| basis.to_string());
    let carried = match measured.basis.price {
        Some(price) => {
            format!("raw close of {}, carried through splits to {}", price.date, measured.basis.as_of)
        }
        None => "no price known".to_owned(),
    };
    vec![
        entry("price", "R9", AMOUNT, carried, of_price(measured)),
        entry(
            "dividend_yield",
            "R9",
            PERCENT,
            format!("headline: the {basis} yield, status {}", measured.income.status),
            of_price(measured),
        ),
        entry("yield_ttm", "R7", PERCENT, over_price(measured.income.dps_ttm), of_price(measured)),
        entry(
            "yield_ttm_total",
            "R7",
            PERCENT,
            over_price(measured.income.dps_ttm_total),
            of_price(measured),
        ),
        entry("yield_forward", "R8", PERCENT, over_price(measured.income.forward.amount), of_price(measured)),
        entry(
            "yield_5y_avg",
            "R7",
            PERCENT,
            "mean of the trailing yields at the last 60 month ends".to_owned(),
            Vec::new(),
        ),
    ]
}

fn rhythm(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let dates: Vec<String> =
        measured.basis.rates.iter().rev().take(7).rev().map(|rate| rate.ex_date.to_string()).collect();
    let source = measured.basis.rhythm.source.map_or("nothing", |source| source.as_str());
    let formula = format!(
        "{} from {source}; newest regular ex-dates {}",
        measured.basis.rhythm.frequency,
        dates.join(", ")
    );
    let newest = measured.basis.payments().iter().rev().filter(|payment| payment.class.is_regular()).take(7);
    let newest: Vec<ExplainedObservation> = newest.map(of_payment).collect();
    vec![
        entry("frequency", "R5", NONE, formula.clone(), newest.clone()),
        entry("payments_per_year", "R5", NONE, formula, newest),
    ]
}

fn growth(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let last = measured.basis.as_of.year() - 1;
    let totals = &measured.progress.totals;
    let total =
        |year: i32| totals.total(year).map_or_else(|| "none".to_owned(), |total| number(Some(total.amount)));
    let mut entries: Vec<ExplainedMetric> = [1, 3, 5, 10]
        .into_iter()
        .map(|span| {
            let formula = format!(
                "(D[{last}] {} / D[{}] {}) ^ (1/{span}) - 1, x 100",
                total(last),
                last - span,
                total(last - span)
            );
            entry(&format!("growth_{span}y"), "R13", PERCENT, formula, Vec::new())
        })
        .collect();
    let first = measured.progress.streak.started.unwrap_or(last) - 1;
    let years: Vec<String> =
        (first..=measured.basis.as_of.year()).map(|year| format!("{year}: {}", total(year))).collect();
    let streak = format!("consecutive years above the year before by more than 0.05 %: {}", years.join(", "));
    let risk =
        format!("forward {} against D[{last}] {}", number(measured.income.forward.amount), total(last));
    let security = of_security(measured);
    entries.extend([
        entry("increase_streak_years", "R14", NONE, streak, security.clone()),
        entry("streak_at_risk", "R14", NONE, risk, Vec::new()),
        entry(
            "payment_streak_years",
            "R14",
            NONE,
            format!("consecutive years with a regular payment up to {}", measured.basis.as_of.year()),
            Vec::new(),
        ),
        entry(
            "is_dividend_aristocrat",
            "R15",
            NONE,
            "S&P 500 member, 25 years, float cap 3 bn, daily value 5 m, active, not at risk".to_owned(),
            [security, of_fundamentals(measured)].concat(),
        ),
    ]);
    entries
}

fn company(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let earned = match measured.payouts.basis {
        crate::measure::payout::PayoutBasis::Eps => measured.figures.eps_ttm,
        crate::measure::payout::PayoutBasis::Ffo => measured.figures.ffo_per_share,
    };
    let payout = match measured.payouts.ratio {
        Ok(_) => format!(
            "{} / {} {} x 100",
            number(measured.income.dps_ttm),
            measured.payouts.basis.as_str(),
            number(earned)
        ),
        Err(gap) => format!("null: {}", gap.as_str()),
    };
    let flow = number(measured.figures.free_cash_flow);
    let chowder = format!(
        "yield {} + growth of five years {}",
        number(measured.income.yield_forward),
        number(measured.progress.growth[2])
    );
    let safety = format!(
        "status {}, at risk {}, payout {}, free-cash-flow payout {}",
        measured.income.status,
        measured.progress.at_risk,
        number(measured.payouts.ratio.ok()),
        number(measured.payouts.fcf)
    );
    let trap = format!(
        "{safety}, forward {} against trailing {}, price change of 12 months {} %",
        number(measured.income.forward.amount),
        number(measured.income.dps_ttm),
        number(measured.returns.price_change_1y)
    );
    let figures = of_fundamentals(measured);
    vec![
        entry("payout_ratio", "R17", PERCENT, payout, figures.clone()),
        entry(
            "fcf_payout_ratio",
            "R17",
            PERCENT,
            format!("dividends paid / free cash flow {flow} x 100"),
            figures.clone(),
        ),
        entry("chowder_number", "R16", PERCENT, chowder, Vec::new()),
        entry("safety", "R18", NONE, safety, figures.clone()),
        entry("yield_trap_risk", "R18", NONE, trap, figures),
    ]
}

fn market(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let price = of_price(measured);
    let reinvested = |years: &str| {
        format!(
            "product of (P + D) x s / P before, from the last close {years} ago to the latest, less 1, x 100"
        )
    };
    let volatility =
        "sample standard deviation of the newest 252 adjusted daily returns x sqrt(252) x 100".to_owned();
    vec![
        entry("total_return_1y", "R12", PERCENT, reinvested("12 months"), price.clone()),
        entry("total_return_5y", "R12", PERCENT, reinvested("60 months"), price.clone()),
        entry("volatility_1y", "R23", PERCENT, volatility, price.clone()),
        entry(
            "beta_5y",
            "R23",
            PERCENT,
            "covariance over variance of month-end returns of 60 months".to_owned(),
            price,
        ),
    ]
}
