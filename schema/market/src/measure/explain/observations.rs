//! Observations as an explanation names them.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::entry::ExplainedObservation;
use crate::bars::date_of;
use crate::event::{Kind, line_column};
use crate::history::Observation;
use crate::measure::arithmetic;
use crate::measure::class::Class;
use crate::measure::measured::Measured;
use crate::measure::merge::{Fate, Payment};
use crate::value::Exact;

/// A payment that counts.
pub(super) fn of_payment(payment: &Payment<'_>) -> ExplainedObservation {
    let record = &payment.observation.record;
    ExplainedObservation {
        amount: Some(arithmetic::amount(payment.amount)),
        currency: Some(record.currency.to_string()),
        ..observation(Kind::Dividend, payment.observation, Some(payment.ex_date), "used", String::new())
    }
}

/// The payments of some classes with an ex-date in (after, through], and the splits since, which bring them to today's
/// share basis.
pub(super) fn of_dividends(
    measured: &Measured<'_>,
    after: NaiveDate,
    through: NaiveDate,
    counts: fn(Class) -> bool,
) -> Vec<ExplainedObservation> {
    let payments = measured.basis.payments().iter();
    let counted = payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p.class));
    let mut used: Vec<ExplainedObservation> = counted.map(of_payment).collect();
    if let Some(first) = used.first().and_then(|payment| payment.date) {
        used.extend(of_splits(measured, first));
    }
    used
}

/// The splits that count, after a day and up to the as-of date.
fn of_splits(measured: &Measured<'_>, after: NaiveDate) -> impl Iterator<Item = ExplainedObservation> {
    let splits = measured.basis.merged.splits.splits.iter();
    let passed = splits.filter(move |split| {
        !split.cancelled && after < split.ex_date && split.ex_date <= measured.basis.as_of
    });
    passed.map(|split| {
        let row = &measured.basis.history.splits[split.index];
        let shares = format!("{} shares became {}", row.record.from.normalize(), row.record.to.normalize());
        observation(Kind::Split, row, Some(split.ex_date), "used", shares)
    })
}

/// The latest close, and what other sources say of its day.
pub(super) fn of_price(measured: &Measured<'_>) -> Vec<ExplainedObservation> {
    measured.basis.price.iter().flat_map(|price| of_bar(measured, price.index)).collect()
}

/// The raw close of a bar, and those of its day that do not count.
pub(super) fn of_bar(measured: &Measured<'_>, index: usize) -> Vec<ExplainedObservation> {
    of_day(measured, measured.basis.series().bars.day[index])
}

/// What every source says of a day's close, the one that counts first.
pub(super) fn of_day(measured: &Measured<'_>, day: i32) -> Vec<ExplainedObservation> {
    let (series, basis) = (measured.basis.series(), &measured.basis);
    let counted = series.bars.day.binary_search(&day).ok();
    let chosen = counted.map(|index| (index, basis.merged.prices.source_of(index)));
    let told = basis.history.prices.iter().enumerate().filter_map(|(place, prices)| {
        let bar = prices.bars.day.binary_search(&day).ok()?;
        let version = prices.bars.version_of(bar);
        let used = chosen.filter(|(_, source)| *source == place);
        let held = || basis.merged.prices.held.iter().find(|h| (h.day, &h.source) == (day, &prices.source));
        let (outcome, reason) = match held().filter(|_| used.is_none()) {
            _ if used.is_some() => ("used", ""),
            _ if version.retracted => ("cancelled", "the bar was withdrawn"),
            Some(held) => (held.reason.as_str(), "it is held back; see quarantined"),
            None => ("other_source", "the source policy believes another source for its day"),
        };
        // What counts is raw; what does not is shown as its source says it.
        let close = match used {
            Some((index, _)) => Some(series.close(index)),
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
            outcome: outcome.to_owned(),
            reason: reason.to_owned(),
        })
    });
    let mut told: Vec<ExplainedObservation> = told.collect();
    told.sort_by_key(|observation| (observation.outcome != "used", observation.source.clone()));
    told
}

/// The fundamentals records used, newest first.
pub(super) fn of_fundamentals(measured: &Measured<'_>) -> Vec<ExplainedObservation> {
    let used = measured.basis.merged.fundamentals.iter().flat_map(|merged| &merged.used);
    used.take(2)
        .map(|index| {
            let row = &measured.basis.history.fundamentals[*index];
            observation(Kind::Fundamentals, row, Some(row.record.as_of), "used", String::new())
        })
        .collect()
}

/// The reference record.
pub(super) fn of_security(measured: &Measured<'_>) -> Vec<ExplainedObservation> {
    measured
        .basis
        .history
        .security
        .iter()
        .map(|row| observation(Kind::Security, row, None, "used", String::new()))
        .collect()
}

/// Dividends and splits that do not count, with the reason.
pub(super) fn unused(measured: &Measured<'_>) -> Vec<ExplainedObservation> {
    let history = measured.basis.history;
    let mut unused = Vec::new();
    for (row, fate) in history
        .dividends
        .iter()
        .zip(&measured.basis.merged.dividends.fates)
        .filter(|(_, fate)| **fate != Fate::Used)
    {
        let (outcome, reason) = told(fate, &history.dividends);
        unused.push(ExplainedObservation {
            amount: Some(exact(row.record.amount)),
            currency: Some(row.record.currency.to_string()),
            ..observation(Kind::Dividend, row, row.record.ex_date.or(row.record.record_date), outcome, reason)
        });
    }
    for (row, fate) in history
        .splits
        .iter()
        .zip(&measured.basis.merged.splits.fates)
        .filter(|(_, fate)| **fate != Fate::Used)
    {
        let (outcome, reason) = told(fate, &history.splits);
        unused.push(observation(Kind::Split, row, Some(row.record.ex_date), outcome, reason));
    }
    let key = |row: &ExplainedObservation| {
        (row.kind.clone(), row.date, row.source.clone(), row.id.clone(), row.revision, row.line)
    };
    unused.sort_by_cached_key(key);
    unused
}

fn observation<T>(
    kind: Kind,
    row: &Observation<T>,
    date: Option<NaiveDate>,
    outcome: &str,
    reason: String,
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
        outcome: outcome.to_owned(),
        reason,
    }
}

fn told<T>(fate: &Fate, rows: &[Observation<T>]) -> (&'static str, String) {
    let named = |index: usize| {
        let row = &rows[index];
        let id = row.id.as_ref().map(|id| format!("id {id}, ")).unwrap_or_default();
        format!("{id}revision {}, line {}, observed {}", row.revision, row.line, row.observed_at.to_rfc3339())
    };
    match fate {
        Fate::Used => ("used", String::new()),
        Fate::Superseded(by) => {
            ("superseded", format!("a greater version of the same record replaced it: {}", named(*by)))
        }
        Fate::Cancelled => ("cancelled", "the record was withdrawn".to_owned()),
        Fate::Duplicate(of) => (
            "duplicate",
            format!("another row stands for the same ex-date, type and currency: {}", named(*of)),
        ),
        Fate::OtherSource => {
            ("other_source", "the source policy believes another source for its dates".to_owned())
        }
        Fate::Overridden => ("overridden", "a manual record replaced it".to_owned()),
        Fate::Quarantined(reason) => (reason.as_str(), "it is held back; see quarantined".to_owned()),
        Fate::NotYetKnown => ("not_yet_known", "it was declared after the as-of date".to_owned()),
        Fate::Moved => ("moved", "a later version moved it to another symbol".to_owned()),
    }
}

fn exact(value: Decimal) -> Exact {
    Exact::from(value)
}
