//! Explanations of dividend development: annual totals, growth, streaks, raises and cuts.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::entry::Unit::{Amounts, Percent, Unrounded};
use super::entry::{ExplainedMetric, ExplainedObservation, entry, number};
use super::observations::{of_dividends, of_fundamentals, of_payment, of_payments, of_security};
use super::years::{streak_years, years};
use crate::dated_text::{DatedText, Terms, Undated, dated_text, undated};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::grower_lists::{ARISTOCRAT_DAILY_VALUE, TIERS};
use crate::metrics::dividends::growth::NoGrowthReason;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::Payment;

pub(crate) fn explain_development(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    [
        explain_growth(computed),
        explain_streaks(computed),
        explain_changes(computed),
        explain_payment_counts(computed),
    ]
    .concat()
}

/// Dividend total of a year; `none` if the year has none.
fn total(computed: &ComputedMetrics<'_>, year: i32) -> Undated {
    let total = computed.growth.totals.total(year);
    total.map_or_else(|| undated("none"), |total| number(Some(total.amount)))
}

/// Year without a figure.
fn bare_year(year: i32) -> Terms {
    Terms::of_year(year, year)
}

/// Observations of the regular payments in the years `first` to `last`, and of the splits since the first payment.
fn of_years(computed: &ComputedMetrics<'_>, first: i32, last: i32) -> Vec<ExplainedObservation> {
    // A payment may count in the year before or after the year of its ex-date.
    let (after, through) = (day_before(first - 1), day_before(last + 2));
    let is_counted = |payment: &Payment<'_>| {
        let year = computed.inputs.reading(payment).map_or(payment.ex_date.year(), |reading| reading.year);
        payment.class.is_regular() && (first..=last).contains(&year)
    };
    of_payments(computed, after, through, is_counted)
}

/// Last day of the year before.
fn day_before(year: i32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year - 1, 12, 31).unwrap_or(NaiveDate::MIN)
}

fn explain_growth(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let last = computed.inputs.as_of.year() - 1;
    let served = |index: usize| computed.growth.growth[index];
    let span_of = |(index, span): (usize, i32)| {
        let base = last - span;
        let formula = match computed.growth.totals.growth(last, span) {
            Err(reason) => dated_text!("null: {}", no_growth(reason)),
            Ok(_) if served(index).is_none() => dated_text!(
                "null: it is uncertain if dividends in {} to {} are already adjusted for a later split",
                bare_year(base),
                bare_year(last)
            ),
            Ok(_) => {
                let total_of = |year| Terms::of_year(year, format!("{} in {year}", total(computed, year)));
                let root = if span == 1 { String::new() } else { format!(" ^ (1/{span})") };
                dated_text!("({} / {}){} - 1, x 100", total_of(last), total_of(base), undated(root))
            }
        };
        let payments = [of_years(computed, base, base), of_years(computed, last, last)].concat();
        let is_end = |year, _| served(index).is_some() && (year == base || year == last);
        let ends = years(computed, base..=last, is_end);
        entry(&format!("growth_{span}y"), "R13", Percent, formula, payments).with_years((ends, 0))
    };
    let mut entries: Vec<ExplainedMetric> = [(0, 1), (1, 3), (2, 5), (3, 10)].map(span_of).into();
    let totals =
        dated_text!("regular amounts by dividend year, adjusted for splits{}", peculiar_years(computed));
    let first = computed.growth.totals.first_year().unwrap_or(last);
    let all = years(computed, first..=last + 1, |_, _| true);
    let payments = of_years(computed, first, last + 1);
    entries.push(entry("annual_totals", "R13", Amounts, totals, payments).with_years((all, 0)));
    entries
}

/// Reason for a missing growth rate, as a sentence.
fn no_growth(reason: NoGrowthReason) -> DatedText {
    match reason {
        NoGrowthReason::NoBase(year) => {
            dated_text!("no regular dividend is known in {} or before", bare_year(year))
        }
        NoGrowthReason::NoPayment(year) => {
            dated_text!("no regular dividend was paid in {}", bare_year(year))
        }
        NoGrowthReason::MissingPayments(year) => {
            dated_text!("several payments of {} are missing", bare_year(year))
        }
        NoGrowthReason::PartialBase(year) => {
            dated_text!("the first year {} has fewer payments than the next year", bare_year(year))
        }
        NoGrowthReason::OutOfRange => "the rate is too large".into(),
    }
}

/// Text that lists, by reason, the years whose total is not the plain sum of their payments (R34).
fn peculiar_years(computed: &ComputedMetrics<'_>) -> DatedText {
    let totals = &computed.growth.totals;
    let unknown: Vec<i32> =
        totals.years.iter().filter(|total| total.is_unknown).map(|total| total.year).collect();
    let assumed: Vec<i32> = totals.gaps.iter().copied().filter(|year| !unknown.contains(year)).collect();
    let running = computed.inputs.as_of.year();
    let partial: Vec<i32> = totals
        .first_year()
        .into_iter()
        .filter(|year| *year < running && !totals.is_complete(*year, running) && !totals.is_unknown(*year))
        .collect();
    let mut changed = computed.inputs.schedule.changed.clone();
    changed.retain(|year| *year <= running);
    changed.sort_unstable();
    changed.dedup();
    let mut text = DatedText::default();
    for (reason, years) in [
        ("; incomplete, because payments before the first row may be missing: ", &partial),
        ("; with a payment that has its ex-date in the year before or after: ", &totals.shifted),
        ("; with an assumed amount for a missing payment: ", &assumed),
        ("; unknown, because several payments are missing: ", &unknown),
        (
            "; around a change of the frequency or of the month, each payment is for the time since the one before: ",
            &changed,
        ),
        ("; of these, converted to twelve months: ", &totals.scaled),
    ] {
        if !years.is_empty() {
            let years = years.iter().map(|year| (*year, year.to_string()));
            text = dated_text!("{}{}{}", text, reason, Terms::years(", ", years));
        }
    }
    text
}

fn explain_streaks(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let (streak, running) = (&computed.growth.streak, computed.inputs.as_of.year());
    let (last, first) = (running - 1, streak.started.unwrap_or(running - 1) - 1);
    let seed =
        if streak.seeded { "; earlier years come from a seed (years entered by an operator)" } else { "" };
    let rules = computed.inputs.rules;
    let flat = match rules.streak.tolerated_flat_years {
        0 => String::new(),
        years => format!(" (up to {years} flat years in a row are ignored)"),
    };
    let formula = dated_text!(
        "consecutive years with a total more than {} % above the year before{}{}{}",
        undated(rules.streak.tolerance),
        undated(flat),
        seed,
        rates_after_spin_offs(computed, first)
    );
    let risk = match computed.income.forward.amount {
        None => "false: the security has no forward dividend".into(),
        Some(forward) => {
            let verdict = if computed.growth.at_risk { " is below " } else { " is not below " };
            let total = format!("the dividends of {last}, {}", total(computed, last));
            dated_text!(
                "forward dividend {}{}{}",
                number(Some(forward)),
                verdict,
                Terms::of_year(last, total)
            )
        }
    };
    let bound = match (streak.lower_bound, computed.growth.totals.first_year()) {
        (true, Some(began)) => dated_text!(
            "the streak reaches back to the first known year {}, so it may be longer",
            bare_year(began)
        ),
        (_, None) => "no regular dividend is known".into(),
        (false, Some(began)) => dated_text!(
            "the streak does not reach back to the first known year {}, or a seed or the listing date sets its start",
            bare_year(began)
        ),
    };
    let observations = [of_years(computed, first, running), of_security(computed)].concat();
    let known = if streak.seeded { "; years of a seed are not counted" } else { "" };
    let paid = dated_text!("consecutive years with a regular payment up to {}{}", bare_year(running), known);
    let started = dated_text!("first year of the streak of {}", undated(streak.years));
    let length = || dated_text!("streak of {} years", undated(streak.years));
    let paying = running + 1 - computed.growth.payment_years.max(1)..=running;
    let payments = of_years(computed, *paying.start(), running);
    let paying_years =
        years(computed, paying, |year, _| year < running || !computed.growth.totals.amount(year).is_zero());
    let lists = &rules.lists;
    let aristocrat = dated_text!(
        "requires S&P 500 membership, a streak of at least {} years, a float market cap of at least {}, a daily value \
         of at least {}, and an active dividend that is not at risk; {}, at risk: {}",
        undated(lists.aristocrat_years),
        scaled(lists.aristocrat_float_cap, 1_000_000_000, "bn"),
        scaled(ARISTOCRAT_DAILY_VALUE, 1_000_000, "m"),
        length(),
        undated(computed.growth.at_risk)
    );
    let list_facts = [of_security(computed), of_fundamentals(computed)].concat();
    let king = dated_text!("{}, at least {} needed", length(), undated(lists.king_years));
    let [(_, champion), (_, contender), (_, challenger)] = TIERS;
    let tier = dated_text!(
        "{}: champion from {}, contender from {}, challenger from {}",
        length(),
        undated(champion),
        undated(contender),
        undated(challenger)
    );
    vec![
        entry("increase_streak_years", "R14", Unrounded, formula, observations.clone())
            .with_years(streak_years(computed)),
        entry("streak_lower_bound", "R14", Unrounded, bound, of_security(computed)),
        entry("streak_at_risk", "R14", Unrounded, risk, of_years(computed, last, running)),
        entry("streak_started", "R14", Unrounded, started, observations.clone())
            .with_years(streak_years(computed)),
        entry("payment_streak_years", "R14", Unrounded, paid, payments).with_years((paying_years, 0)),
        entry("is_dividend_aristocrat", "R15", Unrounded, aristocrat, list_facts),
        entry("is_dividend_king", "R15", Unrounded, king, observations.clone()),
        entry("tier", "R15", Unrounded, tier, observations),
    ]
}

/// Text on the years of a streak that are compared with the rate after a spin-off, not with a total (R14). `first` is the
/// first year of the comparison.
fn rates_after_spin_offs(computed: &ComputedMetrics<'_>, first: i32) -> DatedText {
    let mut text = DatedText::default();
    for (year, rate) in computed.growth.rates_after.iter().filter(|(year, _)| *year >= first) {
        let is_used = computed.growth.totals.total(*year).is_some_and(|total| *rate < total.amount);
        if is_used && *year < computed.inputs.as_of.year() {
            let next = Terms::of_year(
                *year,
                format!("{} is compared with the yearly rate after the spin-off of {year}", year + 1),
            );
            text = dated_text!("{}; R14: {}, {}", text, next, number(Some(*rate)));
        }
    }
    text
}

/// Formats a large amount in millions or billions, for example `3 bn`.
fn scaled(amount: Decimal, unit: i64, name: &str) -> Undated {
    undated(format_args!("{} {name}", (amount / Decimal::from(unit)).normalize()))
}

fn explain_changes(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let changes = &computed.growth.changes;
    let around = |day: Option<NaiveDate>| {
        let payments = computed.inputs.payments().iter().rev().filter(|payment| payment.class.is_regular());
        payments
            .skip_while(|payment| Some(payment.ex_date) > day)
            .take(2)
            .map(|payment| of_payment(computed, payment))
            .collect::<Vec<_>>()
    };
    let raised = changes.latest_increase.map(|(day, _)| day);
    let tolerance = computed.inputs.rules.streak.tolerance;
    let newest_rate = |direction: &'static str, day: Option<NaiveDate>| {
        dated_text!("newest rate more than {}{}{}", undated(tolerance), direction, day)
    };
    let raise = newest_rate(" % above the previous rate: ", raised);
    let cut = newest_rate(" % below the previous rate: ", changes.last_cut);
    let size = match raised {
        Some(day) => dated_text!("rate of {} / previous comparable rate - 1, x 100", day),
        None => "null: no increase is known".into(),
    };
    let cuts = dated_text!(
        "number of rates more than {} % below the previous rate in the last ten years",
        undated(tolerance)
    );
    vec![
        entry("latest_increase_date", "R13", Unrounded, raise, around(raised)),
        entry("latest_increase_percent", "R13", Percent, size, around(raised)),
        entry("last_cut_date", "R13", Unrounded, cut, around(changes.last_cut)),
        entry("cuts_10y", "R13", Unrounded, cuts, around(changes.last_cut)),
    ]
}

fn explain_payment_counts(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let all = of_dividends(computed, NaiveDate::MIN, computed.inputs.as_of, DividendClass::is_regular);
    let count = dated_text!("number of regular ex-dates up to {}", computed.inputs.as_of);
    let first = all.first().cloned().into_iter().collect();
    vec![
        entry("first_payment_date", "R14", Unrounded, "first regular ex-date known", first),
        entry("payment_count", "R14", Unrounded, count, all),
    ]
}
