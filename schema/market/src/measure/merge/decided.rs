//! What people decided about rows that are held back: a released row counts, a confirmed one stays held whatever its
//! neighbours say. Of several decisions about one row the newest stands; one that was taken back decides nothing.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::row_rule::RowFault;
use super::version::Held;
use crate::event::{Action, DecidedRow, Decision, Dividend, Kind, Split, Verdict};
use crate::observation::Observation;
use crate::row::HoldReason;

/// The decisions that stand, by the row that they are about.
#[derive(Debug, Default)]
pub(crate) struct Decided<'a> {
    rows: BTreeMap<DecidedRow, &'a Decision>,
}

impl<'a> Decided<'a> {
    pub(crate) fn of(decisions: &'a [Observation<Decision>]) -> Self {
        let standing = newest(decisions).into_values().filter(|newest| newest.action == Action::Put);
        Self { rows: standing.map(|newest| (newest.record.row.clone(), &newest.record)).collect() }
    }

    /// Whether anything is decided of prices.
    pub(crate) fn has_prices(&self) -> bool {
        self.rows.keys().any(|row| row.kind == Kind::Price)
    }

    /// What is decided of a bar, by the close that is looked at.
    pub(super) fn of_bar(&self, source: &str, day: NaiveDate, close: Decimal) -> Option<&'a Decision> {
        self.get(|| row(Kind::Price, source, None, Some(day), close))
    }

    /// Whether a row that its neighbours contradict counts all the same.
    pub(super) fn releases(&self, dividend: &Observation<Dividend>) -> bool {
        self.get(|| dividend_row(dividend)).is_some_and(|decision| decision.verdict == Verdict::Release)
    }

    /// Why a dividend stays held, if a person said so.
    pub(super) fn confirms(&self, dividend: &Observation<Dividend>) -> Option<RowFault> {
        self.get(|| dividend_row(dividend)).and_then(confirmed)
    }

    /// Marks the held rows that a person has confirmed.
    pub(super) fn mark<T>(
        &self,
        held: &mut [Held],
        observations: &[Observation<T>],
        row: fn(&Observation<T>) -> DecidedRow,
    ) {
        for held in held {
            if let Some(fault) = self.get(|| row(&observations[held.index])).and_then(confirmed) {
                (held.reason, held.message) = fault;
            }
        }
    }

    /// The row is made only when there is something to find.
    fn get(&self, row: impl FnOnce() -> DecidedRow) -> Option<&'a Decision> {
        if self.rows.is_empty() { None } else { self.rows.get(&row()).copied() }
    }
}

/// The newest decision about each row, taken back or not.
pub(crate) fn newest(decisions: &[Observation<Decision>]) -> BTreeMap<&DecidedRow, &Observation<Decision>> {
    let mut newest: BTreeMap<&DecidedRow, &Observation<Decision>> = BTreeMap::new();
    for decision in decisions {
        let known = newest.entry(&decision.record.row).or_insert(decision);
        if known.version(0) < decision.version(0) {
            *known = decision;
        }
    }
    newest
}

/// The reason and the sentence of a row that a person has confirmed to be wrong.
pub(super) fn confirmed(decision: &Decision) -> Option<RowFault> {
    (decision.verdict == Verdict::Confirm).then(|| {
        (HoldReason::Confirmed, format!("a person confirmed {}: {}", decision.reason, decision.note))
    })
}

/// A dividend as decisions name it.
pub(crate) fn dividend_row(dividend: &Observation<Dividend>) -> DecidedRow {
    let record = &dividend.record;
    let date = record.ex_date.or(record.record_date);
    row(Kind::Dividend, &dividend.source, dividend.id.as_deref(), date, record.amount)
}

/// A split as decisions name it.
pub(crate) fn split_row(split: &Observation<Split>) -> DecidedRow {
    row(Kind::Split, &split.source, split.id.as_deref(), Some(split.record.ex_date), split.record.to)
}

fn row(
    kind: Kind,
    source: &str,
    row_id: Option<&str>,
    date: Option<NaiveDate>,
    value: Decimal,
) -> DecidedRow {
    DecidedRow { kind, source: source.to_owned(), row_id: row_id.map(str::to_owned), date, value }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::symbol::Symbol;

    fn decided(verdict: Verdict, action: Action, second: i64) -> Observation<Decision> {
        Observation {
            source: "manual".into(),
            id: None,
            security_ref: None,
            revision: 0,
            action,
            observed_at: DateTime::from_timestamp(second, 0).unwrap(),
            line: 1,
            frame: [0; 16],
            record: Decision {
                symbol: Symbol::parse("TEST").unwrap(),
                verdict,
                row: row(Kind::Price, "vendor", None, Some(day()), dec!(100)),
                reason: "price_unit_error".into(),
                note: "seen".into(),
            },
        }
    }

    fn day() -> NaiveDate {
        "2024-06-28".parse().unwrap()
    }

    #[test]
    fn the_newest_decision_stands_until_it_is_taken_back() {
        let (release, confirm) = (Verdict::Release, Verdict::Confirm);
        let (put, retract) = (Action::Put, Action::Retract);
        let check = |said: &[(Verdict, Action, i64)], expected| {
            for said in [said.to_vec(), said.iter().rev().copied().collect()] {
                let said: Vec<_> = said.into_iter().map(|(v, action, at)| decided(v, action, at)).collect();
                let found =
                    Decided::of(&said).of_bar("vendor", day(), dec!(100.00)).map(|found| found.verdict);
                assert_eq!(found, expected, "{said:?}");
            }
        };
        check(&[(release, put, 1)], Some(release));
        check(&[(release, put, 1), (confirm, put, 2)], Some(confirm));
        check(&[(release, put, 1), (release, retract, 2)], None);
        check(&[(confirm, put, 3), (release, retract, 2)], Some(confirm));
        let said = [decided(release, put, 1)];
        assert!(
            Decided::of(&said).of_bar("vendor", day(), dec!(101)).is_none(),
            "another close is another row"
        );
    }
}
