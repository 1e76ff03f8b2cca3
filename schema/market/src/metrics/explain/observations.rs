//! Conversion of a history's facts to the observations that an explanation lists.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::entry::{ExplainedObservation, number};
use crate::bars::BarVersion;
use crate::dated_text::{DatedText, Terms, dated_text, undated};
use crate::day::date_of;
use crate::event::{Kind, line_column};
use crate::history::Observation;
use crate::metrics::arithmetic;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::{ImpliedFactor, ObservationStatus, Payment, conflicting_closes};
use crate::metrics::source_preference::{DEFAULT_CHOICE, MANUAL, Standing};
use crate::row::AmountReading;

/// Observation of a used payment. Its field `reason` has the amount that an adjusted feed gave, and says how the payment
/// schedule interprets the payment. For example, one part of the amount is regular, and the rest is a special dividend.
pub(crate) fn of_payment(computed: &ComputedMetrics<'_>, payment: &Payment<'_>) -> ExplainedObservation {
    let record = &payment.observation.record;
    let notes = [
        unadjusted_text(payment),
        derived_text(payment),
        declared_text(computed, payment),
        parts_text(computed, payment),
        reading_text(computed, payment),
    ];
    let joined = |text: DatedText, note: DatedText| match (text.is_empty(), note.is_empty()) {
        (true, _) => note,
        (false, true) => text,
        (false, false) => dated_text!("{}; {}", text, note),
    };
    let notes = notes.into_iter().fold(DatedText::default(), joined);
    ExplainedObservation {
        amount: Some(arithmetic::amount(payment.amount)),
        currency: Some(record.currency.to_string()),
        ..observation(Kind::Dividend, payment.observation, Some(payment.ex_date), "used", notes)
    }
}

/// Note on an amount that the feed adjusted (R10). Empty if the raw amount is the given amount.
fn unadjusted_text(payment: &Payment<'_>) -> DatedText {
    let given = payment.observation.record.amount;
    if given == payment.amount {
        return DatedText::default();
    }
    dated_text!("R10: the feed gave {}, adjusted for the splits in its list", undated(given.normalize()))
}

/// Note on an ex-date that is derived from the record date, or that differs from the derived one (R1). Empty for other
/// ex-dates.
fn derived_text(payment: &Payment<'_>) -> DatedText {
    let record = &payment.observation.record;
    match (record.ex_date, payment.expected, record.record_date) {
        (None, _, Some(record_date)) => {
            dated_text!(
                "R1: the ex-date follows from the record date {} by the settlement time of the market",
                record_date
            )
        }
        (Some(_), Some(expected), Some(record_date)) => dated_text!(
            "R1: the record date {} and the settlement time of the market give the ex-date {}",
            record_date,
            expected
        ),
        _ => DatedText::default(),
    }
}

/// Note on a payment that has another row in the dividend currency (R39). Empty for other payments.
fn declared_text(computed: &ComputedMetrics<'_>, payment: &Payment<'_>) -> DatedText {
    let Some(declared) = payment.declared else { return DatedText::default() };
    let currency = undated(&computed.inputs.dividend_currency);
    dated_text!("R39: {} {} in the currency of most payments", number(Some(declared)), currency)
}

/// Note on a payment that contains other rows of its ex-date (R45). Empty for other payments.
fn parts_text(computed: &ComputedMetrics<'_>, payment: &Payment<'_>) -> DatedText {
    if payment.special_part.is_zero() {
        return DatedText::default();
    }
    let special = number(Some(payment.special_part));
    let regular = number(Some(computed.inputs.own_regular_part(payment)));
    dated_text!("R45: contains the other rows of its ex-date; {} is regular, {} is special", regular, special)
}

/// Note of the payment schedule (R34) on an unusual payment, for example a special dividend. Empty for other payments.
fn reading_text(computed: &ComputedMetrics<'_>, payment: &Payment<'_>) -> DatedText {
    let Some(reading) = computed.inputs.reading(payment) else { return DatedText::default() };
    let regular = number(Some(reading.regular));
    match reading.kind {
        AmountReading::Regular
            if reading.year == reading.calendar_year && reading.year != reading.ex_date.year() =>
        {
            let year = Terms::of_year(reading.year, reading.year);
            dated_text!("R14: counts in {}, the year of its payment date", year)
        }
        AmountReading::Regular if reading.year != reading.calendar_year => {
            let year = Terms::of_year(reading.year, reading.year);
            dated_text!("R34: counts in {}, because it fills a slot of that year", year)
        }
        AmountReading::Regular => DatedText::default(),
        AmountReading::Special => "R34: special, since another row has its slot".into(),
        AmountReading::Combined => {
            let special = number(Some(reading.amount - reading.regular));
            dated_text!("R34: {} is regular, like the neighbouring amounts; {} is special", regular, special)
        }
        AmountReading::Dip => {
            let sustained = number(Some(reading.sustained));
            dated_text!("R34: below both neighbours; growth and streak count {}", sustained)
        }
    }
}

/// Observations of the payments with `after` < ex-date <= `through` and a class that `counts` accepts. The splits since
/// the first of these payments are added at the end.
pub(crate) fn of_dividends(
    computed: &ComputedMetrics<'_>,
    after: NaiveDate,
    through: NaiveDate,
    counts: fn(DividendClass) -> bool,
) -> Vec<ExplainedObservation> {
    of_payments(computed, after, through, |payment| counts(payment.class))
}

/// Observations of the payments with `after` < ex-date <= `through` that `counts` accepts, and of the splits since the
/// first of them.
pub(crate) fn of_payments(
    computed: &ComputedMetrics<'_>,
    after: NaiveDate,
    through: NaiveDate,
    counts: impl Fn(&Payment<'_>) -> bool,
) -> Vec<ExplainedObservation> {
    let payments = computed.inputs.payments().iter();
    let counted = payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p));
    let mut used: Vec<ExplainedObservation> = counted.map(|payment| of_payment(computed, payment)).collect();
    if let Some(first) = used.first().and_then(|payment| payment.date) {
        used.extend(of_splits(computed, first));
    }
    used
}

/// Observations of effective splits with an ex-date after `after`, up to and including the as-of date.
fn of_splits(computed: &ComputedMetrics<'_>, after: NaiveDate) -> impl Iterator<Item = ExplainedObservation> {
    let splits = computed.inputs.merged.splits.splits.iter();
    let passed = splits.filter(move |split| {
        !split.cancelled && after < split.ex_date && split.ex_date <= computed.inputs.as_of
    });
    passed.map(|split| {
        let row = &computed.inputs.history.splits[split.index];
        let (from, to) = (undated(row.record.from.normalize()), undated(row.record.to.normalize()));
        let shares = dated_text!("{} shares became {}", from, to);
        observation(Kind::Split, row, Some(split.ex_date), "used", shares)
    })
}

/// Observations of the latest close, and of the closes of other sources on the same day.
pub(crate) fn of_price(computed: &ComputedMetrics<'_>) -> Vec<ExplainedObservation> {
    computed.inputs.price.iter().flat_map(|price| of_bar(computed, price.index)).collect()
}

/// Observations of a bar's raw close, and of the closes of other sources on the same day.
pub(crate) fn of_bar(computed: &ComputedMetrics<'_>, index: usize) -> Vec<ExplainedObservation> {
    of_day(computed, computed.inputs.series().bars.day[index])
}

/// Observations of the closes of all sources on a day, the used close first.
pub(crate) fn of_day(computed: &ComputedMetrics<'_>, day: i32) -> Vec<ExplainedObservation> {
    let (series, basis) = (computed.inputs.series(), &computed.inputs);
    let counted = series.bars.day.binary_search(&day).ok();
    let chosen = counted.map(|index| (index, basis.merged.prices.source_of(index)));
    let closes = basis.history.prices.iter().enumerate().filter_map(|(place, prices)| {
        let bar = prices.bars.day.binary_search(&day).ok()?;
        let version = prices.bars.version_of(bar);
        let used = chosen.filter(|(_, source)| *source == place);
        let held =
            || basis.merged.prices.quarantined.iter().find(|h| (h.day, &h.source) == (day, &prices.source));
        let (outcome, reason) = match held().filter(|_| used.is_none()) {
            _ if used.is_some() => ("used", DatedText::default()),
            _ if version.retracted => ("cancelled", "the bar was withdrawn".into()),
            Some(held) => (held.reason.as_str(), QUARANTINED.into()),
            None => unused_bar_text(computed, place, chosen.map(|(_, source)| source), date_of(day)),
        };
        // The used close is raw. The closes of other sources stay on the share basis of their source.
        let close = match used {
            Some((index, _)) => Some(series.close(index)),
            None if version.retracted => None,
            None => prices.bars.decimal(prices.bars.close[bar]),
        };
        Some(ExplainedObservation {
            kind: Kind::Price.to_string(),
            id: None,
            date: Some(date_of(day)),
            amount: close.map(arithmetic::amount),
            currency: Some(basis.currency.clone()),
            source: prices.source.clone(),
            revision: version.revision,
            line: line_column(version.line),
            file: None,
            frame: Some(version.frame).filter(|frame| *frame != BarVersion::UNKNOWN.frame),
            outcome: outcome.to_owned(),
            reason,
        })
    });
    let mut closes: Vec<ExplainedObservation> = closes.collect();
    closes.sort_by_key(|observation| (observation.outcome != "used", observation.source.clone()));
    closes
}

/// Observations of at most two records from which the company figures come. A manual record is first, if there is one.
/// It is followed by the vendor's records, from newest to oldest.
pub(crate) fn of_fundamentals(computed: &ComputedMetrics<'_>) -> Vec<ExplainedObservation> {
    let used = computed.inputs.merged.fundamentals.iter().flat_map(|merged| &merged.used);
    used.take(2)
        .map(|index| {
            let row = &computed.inputs.history.fundamentals[*index];
            observation(Kind::Fundamentals, row, Some(row.record.as_of), "used", DatedText::default())
        })
        .collect()
}

/// Observation of the security's reference record. Empty for a provisional security, which has no reference record.
pub(crate) fn of_security(computed: &ComputedMetrics<'_>) -> Vec<ExplainedObservation> {
    let security = computed.inputs.history.security.iter();
    security.map(|row| observation(Kind::Security, row, None, "used", DatedText::default())).collect()
}

/// Observations of dividends and splits that no metric uses, each with the reason. Missing payments are included: a
/// feed's adjusted closes imply them, but no row contains them.
pub(crate) fn unused(computed: &ComputedMetrics<'_>) -> Vec<ExplainedObservation> {
    let (history, merged) = (computed.inputs.history, &computed.inputs.merged);
    let mut unused = Vec::new();
    let dividends = history.dividends.iter().zip(&merged.dividends.statuses);
    for (row, status) in dividends.filter(|(_, status)| **status != ObservationStatus::Used) {
        let (outcome, reason) = status_text(status, &history.dividends);
        unused.push(ExplainedObservation {
            amount: Some(row.record.amount.into()),
            currency: Some(row.record.currency.to_string()),
            ..observation(Kind::Dividend, row, row.record.ex_date.or(row.record.record_date), outcome, reason)
        });
    }
    let splits = history.splits.iter().zip(&merged.splits.statuses);
    for (row, status) in splits.filter(|(_, status)| **status != ObservationStatus::Used) {
        let (outcome, reason) = status_text(status, &history.splits);
        unused.push(observation(Kind::Split, row, Some(row.record.ex_date), outcome, reason));
    }
    unused.extend(computed.inputs.completeness.missing.iter().map(|implied| of_missing(computed, implied)));
    unused.extend(conflicting_closes(history, computed.inputs.as_of).map(|(date, row)| {
        let reason = "R29: its file has another close of the day before it, which is used; a map selects rows with [rows] only";
        ExplainedObservation {
            amount: row.record.conflict_close.map(arithmetic::amount),
            ..observation(Kind::Price, row, Some(date), "conflicting_duplicate", reason.into())
        }
    }));
    let key = |row: &ExplainedObservation| {
        (row.kind.clone(), row.date, row.source.clone(), row.id.clone(), row.revision, row.line)
    };
    unused.sort_by_cached_key(key);
    unused
}

/// Observation of a missing payment: a feed's adjusted closes imply a payment, but no row contains one. The amount is
/// the close before the ex-date, multiplied by 1 - implied factor.
fn of_missing(computed: &ComputedMetrics<'_>, implied: &ImpliedFactor<'_>) -> ExplainedObservation {
    let close = computed.inputs.series().close_before(implied.ex_date);
    let amount = close.and_then(|close| close.checked_mul(Decimal::ONE - implied.factor));
    let reason = dated_text!(
        "adjusted closes step by {} between {} and {}, and no row has a payment there",
        undated(implied.factor.round_dp(6).normalize()),
        implied.previous,
        implied.ex_date
    );
    ExplainedObservation {
        amount: amount.map(arithmetic::amount),
        currency: Some(computed.inputs.currency.clone()),
        ..observation(Kind::Evidence, implied.observation, Some(implied.ex_date), "missing", reason)
    }
}

fn observation<T>(
    kind: Kind,
    row: &Observation<T>,
    date: Option<NaiveDate>,
    outcome: &str,
    reason: DatedText,
) -> ExplainedObservation {
    ExplainedObservation {
        kind: kind.to_string(),
        id: row.id.clone(),
        date,
        amount: None,
        currency: None,
        source: row.source.to_string(),
        revision: row.revision,
        line: line_column(row.line),
        file: None,
        frame: Some(row.frame),
        outcome: outcome.to_owned(),
        reason,
    }
}

/// Reason why the bar of a day is from its source and not from another one.
pub(crate) fn bar_choice(computed: &ComputedMetrics<'_>, source: &str, day: NaiveDate) -> &'static str {
    let standing = Standing::new(computed.inputs.policy, Kind::Price, source, day);
    if source == MANUAL {
        "a manual record comes first"
    } else if standing.is_ranked() {
        "the source policy prefers it for this date"
    } else {
        DEFAULT_CHOICE
    }
}

/// Outcome and reason of a valid bar that is not used. `place` and `chosen` are the indexes of its source and of the
/// used source.
fn unused_bar_text(
    computed: &ComputedMetrics<'_>,
    place: usize,
    chosen: Option<usize>,
    day: NaiveDate,
) -> (&'static str, DatedText) {
    let source = |place: usize| computed.inputs.history.prices[place].source.as_str();
    let standing = |place| Standing::new(computed.inputs.policy, Kind::Price, source(place), day);
    match chosen {
        Some(chosen) if source(chosen) == MANUAL => ("overridden", OVERRIDDEN.into()),
        Some(chosen) if standing(chosen) < standing(place) => {
            ("other_source", outranked_text(source(chosen)))
        }
        Some(chosen) => ("covered", covered_text(source(chosen))),
        None => ("other_source", "no bar of its date is used".into()),
    }
}

const OVERRIDDEN: &str = "a manual record replaced it";
const QUARANTINED: &str = "it is quarantined; the list quarantined has the reason";

fn outranked_text(source: &str) -> DatedText {
    dated_text!("the source policy prefers another source for its date: {}", undated(source))
}

fn covered_text(source: &str) -> DatedText {
    dated_text!("a newer row of another source took its place: {}", undated(source))
}

fn status_text<T>(status: &ObservationStatus, rows: &[Observation<T>]) -> (&'static str, DatedText) {
    let named = |index: usize| {
        let row = &rows[index];
        let id = row.id.as_ref().map(|id| format!("id {id}, ")).unwrap_or_default();
        let observed = Terms::of_day(row.observed_at.date_naive(), row.observed_at.to_rfc3339());
        dated_text!(
            "{}revision {}, line {}, observed {}",
            undated(id),
            undated(row.revision),
            undated(row.line),
            observed
        )
    };
    match status {
        ObservationStatus::Used => ("used", DatedText::default()),
        ObservationStatus::Superseded(by) => {
            ("superseded", dated_text!("a greater version of the same record replaced it: {}", named(*by)))
        }
        ObservationStatus::Cancelled => ("cancelled", "the record was withdrawn".into()),
        ObservationStatus::Duplicate(of) => {
            ("duplicate", dated_text!("another row is the same payment: {}", named(*of)))
        }
        ObservationStatus::Translation(of) => (
            "translation",
            dated_text!("it repeats a payment that counts in the currency of the prices: {}", named(*of)),
        ),
        ObservationStatus::PartOf(of) => {
            ("part", dated_text!("R45: the amount of another row of its ex-date contains it: {}", named(*of)))
        }
        ObservationStatus::Covered(by) => {
            ("covered", dated_text!("{}, {}", covered_text(&rows[*by].source), named(*by)))
        }
        ObservationStatus::OtherSource(by) => ("other_source", outranked_text(&rows[*by].source)),
        ObservationStatus::Overridden(by) => ("overridden", dated_text!("{}: {}", OVERRIDDEN, named(*by))),
        ObservationStatus::Quarantined(reason) => (reason.as_str(), QUARANTINED.into()),
        ObservationStatus::NotYetKnown => ("not_yet_known", "it was declared after the as-of date".into()),
        ObservationStatus::Moved => ("moved", "a later version moved it to another symbol".into()),
    }
}
