//! Observations as an explanation names them.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::ExplainedObservation;
use crate::event::Kind;
use crate::history::Observation;
use crate::measure::arithmetic;
use crate::measure::measured::Measured;
use crate::measure::merge::{Fate, Payment};
use crate::value::Exact;

/// A payment that counts.
pub(super) fn of_payment(payment: &Payment<'_>) -> ExplainedObservation {
    let record = &payment.observation.record;
    ExplainedObservation {
        amount: Some(arithmetic::amount(payment.amount)),
        currency: Some(record.currency.clone()),
        ..observation(Kind::Dividend, payment.observation, Some(payment.ex_date), "used", String::new())
    }
}

/// The regular payments with an ex-date in (after, through].
pub(super) fn of_payments(
    measured: &Measured<'_>,
    after: NaiveDate,
    through: NaiveDate,
    counts: impl Fn(&Payment<'_>) -> bool,
) -> Vec<ExplainedObservation> {
    let payments = measured.basis.payments().iter();
    payments.filter(|p| after < p.ex_date && p.ex_date <= through && counts(p)).map(of_payment).collect()
}

/// The latest close.
pub(super) fn of_price(measured: &Measured<'_>) -> Vec<ExplainedObservation> {
    let Some(price) = measured.basis.price else { return Vec::new() };
    vec![ExplainedObservation {
        kind: Kind::Price.to_string(),
        id: None,
        date: Some(price.date),
        amount: Some(arithmetic::amount(measured.basis.series().close(price.index))),
        currency: Some(measured.basis.currency.clone()),
        source: measured.basis.merged.prices.latest_source.clone().unwrap_or_default(),
        revision: 0,
        line: 0,
        outcome: "used".to_owned(),
        reason: String::new(),
    }]
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
            currency: Some(row.record.currency.clone()),
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
        source: row.source.clone(),
        revision: row.revision,
        line: i64::try_from(row.line).unwrap_or(i64::MAX),
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
        Fate::Quarantined(reason) => (reason, "it is held back; see quarantined".to_owned()),
        Fate::NotYetKnown => ("not_yet_known", "it was declared after the as-of date".to_owned()),
        Fate::Moved => ("moved", "a later version moved it to another symbol".to_owned()),
    }
}

fn exact(value: Decimal) -> Exact {
    Exact::from(value)
}
