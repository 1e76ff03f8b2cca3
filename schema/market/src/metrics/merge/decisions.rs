//! Index of operators' decisions by row. A decision either releases a quarantined row for use, or confirms that the row
//! is wrong.
//!
//! The newest decision about a row is valid. After its revocation, the row has no decision.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::validation::RowFault;
use super::winner::QuarantinedRow;
use crate::event::{Action, DecidedRow, Decision, DecisionVerdict, Dividend, Kind, Split};
use crate::observation::{Observation, newest_by_key};
use crate::row::QuarantineReason;

/// Valid review decisions. The key of the map identifies the row that the decision is about.
#[derive(Debug, Default)]
pub(crate) struct DecisionIndex<'a> {
    rows: BTreeMap<DecidedRow, &'a Decision>,
}

impl<'a> DecisionIndex<'a> {
    pub(crate) fn new(decisions: &'a [Observation<Decision>]) -> Self {
        let standing =
            newest_decisions(decisions).into_values().filter(|newest| newest.action == Action::Put);
        Self { rows: standing.map(|newest| (newest.record.row.clone(), &newest.record)).collect() }
    }

    pub(crate) fn has_prices(&self) -> bool {
        self.rows.keys().any(|row| row.kind == Kind::Price)
    }

    /// Decision about the bar of a source on a day; `None` without a decision. A decision is valid for one close only.
    /// If the close of the bar changed later, the decision is not found.
    pub(crate) fn find_for_bar(&self, source: &str, day: NaiveDate, close: Decimal) -> Option<&'a Decision> {
        self.get(|| row(Kind::Price, source, None, Some(day), close))
    }

    /// True if a decision releases the dividend. A released dividend is used, even if prices or other payments
    /// contradict it.
    pub(crate) fn releases(&self, dividend: &Observation<Dividend>) -> bool {
        self.get(|| dividend_row(dividend))
            .is_some_and(|decision| decision.verdict == DecisionVerdict::Release)
    }

    /// True if a decision releases the split. A released split is used, even if the price did not move by its ratio.
    pub(crate) fn releases_split(&self, split: &Observation<Split>) -> bool {
        self.get(|| split_row(split)).is_some_and(|decision| decision.verdict == DecisionVerdict::Release)
    }

    /// Fault of a dividend if a decision confirmed that the row is wrong; `None` without such a decision.
    pub(crate) fn find_confirmed_fault(&self, dividend: &Observation<Dividend>) -> Option<RowFault> {
        self.get(|| dividend_row(dividend)).and_then(confirmed_fault)
    }

    /// Replaces reason and message of the quarantined rows that a decision confirms as wrong.
    pub(crate) fn apply_confirmations<T>(
        &self,
        quarantined: &mut [QuarantinedRow],
        observations: &[Observation<T>],
        row: fn(&Observation<T>) -> DecidedRow,
    ) {
        for quarantined in quarantined {
            let fault = self.get(|| row(&observations[quarantined.index])).and_then(confirmed_fault);
            if let Some(fault) = fault {
                (quarantined.reason, quarantined.message) = fault;
            }
        }
    }

    /// Decision about a row; `None` without a decision. The function `row` builds the key of the row. The function is
    /// called only if the index has decisions.
    fn get(&self, row: impl FnOnce() -> DecidedRow) -> Option<&'a Decision> {
        if self.rows.is_empty() { None } else { self.rows.get(&row()).copied() }
    }
}

/// Newest decision about each row. Revoked decisions are included.
pub(crate) fn newest_decisions(
    decisions: &[Observation<Decision>],
) -> BTreeMap<&DecidedRow, &Observation<Decision>> {
    newest_by_key(decisions.iter().map(|decision| (&decision.record.row, decision)))
}

/// Fault from a decision that confirms a row as wrong; `None` if the decision releases the row.
pub(crate) fn confirmed_fault(decision: &Decision) -> Option<RowFault> {
    (decision.verdict == DecisionVerdict::Confirm).then(|| {
        (QuarantineReason::Confirmed, format!("a person confirmed {}: {}", decision.reason, decision.note))
    })
}

/// Key that identifies a dividend in review decisions.
pub(crate) fn dividend_row(dividend: &Observation<Dividend>) -> DecidedRow {
    let record = &dividend.record;
    let date = record.ex_date.or(record.record_date);
    row(Kind::Dividend, &dividend.source, dividend.id.as_deref(), date, record.amount)
}

/// Key that identifies a split in review decisions.
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

    fn decided(verdict: DecisionVerdict, action: Action, second: i64) -> Observation<Decision> {
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
        let (release, confirm) = (DecisionVerdict::Release, DecisionVerdict::Confirm);
        let (put, retract) = (Action::Put, Action::Retract);
        let check = |said: &[(DecisionVerdict, Action, i64)], expected| {
            for said in [said.to_vec(), said.iter().rev().copied().collect()] {
                let said: Vec<_> = said.into_iter().map(|(v, action, at)| decided(v, action, at)).collect();
                let found = DecisionIndex::new(&said)
                    .find_for_bar("vendor", day(), dec!(100.00))
                    .map(|found| found.verdict);
                assert_eq!(found, expected, "{said:?}");
            }
        };
        check(&[(release, put, 1)], Some(release));
        check(&[(release, put, 1), (confirm, put, 2)], Some(confirm));
        check(&[(release, put, 1), (release, retract, 2)], None);
        check(&[(confirm, put, 3), (release, retract, 2)], Some(confirm));
        let said = [decided(release, put, 1)];
        assert!(
            DecisionIndex::new(&said).find_for_bar("vendor", day(), dec!(101)).is_none(),
            "another close is another row"
        );
    }
}
