//! Revisions: differences between the rows derived from earlier facts and the rows derived from later facts, for one
//! market date.
//!
//! Ticker events of a security, from its reference record: its renames, and its merger or delisting.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};

use super::calendar::session_on_or_after;
use super::rows::DerivedRows;
use crate::decimal::ExactDecimal;
use crate::event::{FormerSymbol, ListingStatus, Security};
use crate::row::{
    DividendRow, DividendStatus, Metrics, RevisedKind, RevisionReason, SecurityEvent, SecurityEventType,
    SplitRow, SplitStatus,
};

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

/// Ticker events of a reference record: the renames by date, then the merger or delisting. A former symbol without a
/// last day of use is left out, because its rename date is unknown.
pub fn ticker_events(security: &Security, as_of: NaiveDate) -> Vec<SecurityEvent> {
    let symbol = security.symbol.as_str();
    let event = |date, r#type| {
        let status = if date <= as_of { SplitStatus::Effective } else { SplitStatus::Announced };
        SecurityEvent::new(symbol, date, r#type, status)
    };
    let mut former: Vec<(NaiveDate, &FormerSymbol)> =
        security.former_symbols.iter().filter_map(|former| Some((former.to?, former))).collect();
    former.sort_by_key(|(to, former)| (*to, former.from));
    let mut events = Vec::new();
    for (place, (to, old)) in former.iter().enumerate() {
        let new = former.get(place + 1).map_or(&security.symbol, |(_, next)| &next.symbol);
        let Some(next_day) = to.checked_add_days(Days::new(1)).filter(|_| old.symbol != *new) else {
            continue;
        };
        events.push(SecurityEvent {
            from_symbol: Some(old.symbol.to_string()),
            to_symbol: Some(new.to_string()),
            ..event(session_on_or_after(next_day), SecurityEventType::Rename)
        });
    }
    if let Some(last) = security.delisted_on.filter(|_| security.status == ListingStatus::Delisted) {
        events.push(match &security.successor {
            Some(successor) => SecurityEvent {
                to_symbol: Some(successor.to_string()),
                ratio: security.merger_ratio.map(ExactDecimal::from),
                ..event(last, SecurityEventType::Merger)
            },
            None => event(last, SecurityEventType::Delisting),
        });
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn told(record: serde_json::Value) -> Vec<String> {
        let mut whole =
            json!({ "symbol": "NEW", "name": "New", "type": "stock", "currency": "USD", "status": "active" });
        for (name, value) in record.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let security: Security = serde_json::from_value(whole).unwrap();
        let line = |event: &SecurityEvent| {
            let from = event.from_symbol.as_deref().unwrap_or("-");
            let to = event.to_symbol.as_deref().unwrap_or("-");
            let ratio = event.ratio.map_or("-".to_owned(), |ratio| ratio.to_string());
            format!("{} {} {} {from} {to} {ratio}", event.date, event.r#type, event.status)
        };
        ticker_events(&security, day("2024-06-28")).iter().map(line).collect()
    }

    #[test]
    fn renames_follow_the_last_days_of_the_former_symbols() {
        let former = json!({ "former_symbols": [
            { "symbol": "MID", "from": "2015-01-02", "to": "2022-06-08" },
            { "symbol": "OLD", "to": "2015-01-01" },
            { "symbol": "LOST" },
        ] });
        assert_eq!(
            told(former),
            ["2015-01-02 rename effective OLD MID -", "2022-06-09 rename effective MID NEW -"]
        );
        // The last day of the old symbol is a Friday. The first session under the new symbol is the Monday after it.
        let former = json!({ "former_symbols": [{ "symbol": "OLD", "to": "2024-06-28" }] });
        assert_eq!(told(former), ["2024-07-01 rename announced OLD NEW -"]);
        let same = json!({ "former_symbols": [{ "symbol": "NEW", "to": "2024-06-21" }] });
        assert!(told(same).is_empty());
    }

    #[test]
    fn a_security_ends_in_a_merger_or_a_delisting() {
        let gone = json!({ "status": "delisted", "delisted_on": "2023-10-13" });
        assert_eq!(told(gone), ["2023-10-13 delisting effective - - -"]);
        let merged = json!({
            "status": "delisted", "delisted_on": "2024-07-12", "successor": "BIG", "merger_ratio": "0.5",
        });
        assert_eq!(told(merged), ["2024-07-12 merger announced - BIG 0.5"]);
        // A delisting date without the status `delisted` belongs to an earlier listing.
        assert!(told(json!({ "delisted_on": "2023-10-13" })).is_empty());
    }
}
