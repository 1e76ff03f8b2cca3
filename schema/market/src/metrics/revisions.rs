//! Revisions: differences between the rows derived from earlier facts and the rows derived from later facts, for one
//! market date.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::rows::DerivedRows;
use crate::row::{DividendRow, DividendStatus, Metrics, RevisedKind, RevisionReason, SplitRow, SplitStatus};

/// Value that differs between the earlier and the later rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisedValue {
    /// Kind of the value: a field of a dividend record, a field of a split record, or a figure.
    pub kind: RevisedKind,
    /// Id of the record; `None` for a figure.
    pub id: Option<String>,
    /// Ex-date of the record, or the market date of a figure.
    pub date: NaiveDate,
    /// Name of the field.
    pub field: &'static str,
    /// Value in the earlier rows, as text; `None` if it was unknown.
    pub before: Option<String>,
    /// Value in the later rows, as text; `None` if it is unknown.
    pub after: Option<String>,
    /// Reason for the change, for example a correction. A change of the rules is not considered.
    pub reason: RevisionReason,
    /// Source of the record after the change. `None` for figures, splits and removed records.
    pub source: Option<String>,
}

/// Names of a record's fields with their values as text.
type Fields = Vec<(&'static str, Option<String>)>;

/// Dividend or split record in comparable form.
struct ComparedRecord {
    date: NaiveDate,
    source: Option<String>,
    is_cancelled: bool,
    fields: Fields,
}

/// Values that differ between `before` and `after`, the rows of one security for one market date. Both must be derived
/// by the same rules. A new record is not a revision.
pub fn revised_values(before: &DerivedRows, after: &DerivedRows) -> Vec<RevisedValue> {
    let dividends = |rows: &DerivedRows| -> BTreeMap<String, ComparedRecord> {
        let declared = rows.dividends.iter().filter(|row| row.status != DividendStatus::Projected);
        declared.filter_map(|row| Some((row.id.clone()?, ComparedRecord::from(row)))).collect()
    };
    let splits = |rows: &DerivedRows| -> BTreeMap<String, ComparedRecord> {
        rows.splits.iter().map(|row| (row.id.clone(), ComparedRecord::from(row))).collect()
    };
    let mut revised = Vec::new();
    compare_records(RevisedKind::Dividend, &dividends(before), &dividends(after), &mut revised);
    compare_records(RevisedKind::Split, &splits(before), &splits(after), &mut revised);
    let reason = revised.first().map_or(RevisionReason::NewRecord, |value| value.reason);
    let date = after.metrics.as_of;
    for ((field, before), (_, after)) in figures(&before.metrics).into_iter().zip(figures(&after.metrics)) {
        if before != after {
            let (kind, id, source) = (RevisedKind::Figure, None, None);
            revised.push(RevisedValue { kind, id, date, field, before, after, reason, source });
        }
    }
    revised
}

/// Compares records with the same id, and adds the differences to `revised`.
fn compare_records(
    kind: RevisedKind,
    before: &BTreeMap<String, ComparedRecord>,
    after: &BTreeMap<String, ComparedRecord>,
    revised: &mut Vec<RevisedValue>,
) {
    for (id, known) in before {
        let found = after.get(id);
        let is_withdrawn = found.is_none_or(|found| found.is_cancelled && !known.is_cancelled);
        let source = found.and_then(|found| found.source.clone());
        let reason = if is_withdrawn {
            RevisionReason::Retraction
        } else if source != known.source {
            RevisionReason::NewSource
        } else {
            RevisionReason::Correction
        };
        for (place, (field, value)) in known.fields.iter().enumerate() {
            let later = found.and_then(|found| found.fields.get(place)).and_then(|(_, later)| later.clone());
            if *value != later {
                revised.push(RevisedValue {
                    kind,
                    id: Some(id.clone()),
                    date: found.map_or(known.date, |found| found.date),
                    field,
                    before: value.clone(),
                    after: later,
                    reason,
                    source: source.clone(),
                });
            }
        }
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

impl From<&DividendRow> for ComparedRecord {
    fn from(row: &DividendRow) -> Self {
        let fields = vec![
            ("status", text(Some(row.status))),
            ("ex_date", text(Some(row.ex_date))),
            ("payment_date", text(row.payment_date)),
            ("record_date", text(row.record_date)),
            ("declaration_date", text(row.declaration_date)),
            ("amount", text(Some(row.amount))),
            ("currency", Some(row.currency.clone())),
            ("type", text(Some(row.r#type))),
        ];
        let is_cancelled = row.status == DividendStatus::Cancelled;
        Self { date: row.ex_date, source: Some(row.source.clone()), is_cancelled, fields }
    }
}

impl From<&SplitRow> for ComparedRecord {
    fn from(row: &SplitRow) -> Self {
        let fields = vec![
            ("status", text(Some(row.status))),
            ("ex_date", text(Some(row.ex_date))),
            ("ratio", text(Some(row.ratio))),
            ("type", text(Some(row.r#type))),
        ];
        let is_cancelled = row.status == SplitStatus::Cancelled;
        Self { date: row.ex_date, source: None, is_cancelled, fields }
    }
}

/// Headline figures that do not depend on the price.
fn figures(metrics: &Metrics) -> Fields {
    vec![
        ("dividend_status", text(Some(metrics.dividend_status))),
        ("frequency", text(Some(metrics.frequency))),
        ("dps_ttm", text(metrics.dps_ttm)),
        ("dps_forward", text(metrics.dps_forward)),
        ("growth_1y", text(metrics.growth_1y)),
        ("growth_5y", text(metrics.growth_5y)),
        ("increase_streak_years", text(Some(metrics.increase_streak_years))),
        ("payment_streak_years", text(Some(metrics.payment_streak_years))),
    ]
}
