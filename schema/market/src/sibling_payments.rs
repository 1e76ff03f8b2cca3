//! Detection of sibling payments: different payments of one ex-date within one file, such as income and a capital gain
//! (R29).
//!
//! Without sibling amounts, the merge would take the second payment as a correction of the first. A row lists only
//! siblings above it, because ingest publishes rows while it reads the file.

use std::collections::HashMap;

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use crate::event::{Action, Dividend, EventRow, Frequency};

/// Factor 1.5. Two amounts that differ by at least this factor are different payments. A smaller difference alone does
/// not show that they are different payments.
const FACTOR: Decimal = Decimal::from_parts(15, 0, 0, false, 1);

/// Payments that were read from one file so far. Memory is about a hundred bytes per row.
#[derive(Debug, Default)]
pub struct SiblingDetector {
    seen: Vec<FilePayment>,
    /// Maps a hash of symbol, ex-date, type and currency to the index in `seen` of the last row with this hash.
    last: HashMap<HalfHash, usize>,
}

/// First 16 bytes of a hash. They are enough to distinguish the values in one file.
type HalfHash = [u8; 16];

/// Properties of a row that distinguish payments of one day.
#[derive(Debug, Clone, Copy)]
struct FilePayment {
    /// Hash of the vendor's id; `None` without an id.
    id: Option<HalfHash>,
    revision: i64,
    amount: Decimal,
    frequency: Option<Frequency>,
    payment_date: Option<NaiveDate>,
    /// Hash of the vendor's type text; `None` without a type.
    type_text: Option<HalfHash>,
    /// Index in `seen` of the previous row with the same symbol, ex-date, type and currency.
    before: Option<usize>,
}

impl SiblingDetector {
    /// Sets the sibling amounts of a row: the amounts of different payments in earlier rows. All these rows have the
    /// same symbol, ex-date, type and currency. `type_text` is the vendor's type, empty if absent.
    pub fn set_siblings(&mut self, row: &mut EventRow<Dividend>, type_text: &str) {
        if row.action == Action::Retract {
            return;
        }
        let before = self.last.insert(day(&row.record), self.seen.len());
        let seen = FilePayment {
            before,
            id: row.id.as_ref().map(|id| hash([id.as_bytes()])),
            revision: row.revision,
            amount: row.record.amount,
            frequency: row.record.frequency,
            payment_date: row.record.payment_date,
            type_text: (!type_text.is_empty()).then(|| hash([type_text.as_bytes()])),
        };
        let day =
            std::iter::successors(before, |index| self.seen[*index].before).map(|index| &self.seen[index]);
        let others = day.filter(|other| seen.is_another_payment(other));
        row.record.sibling_amounts = others.map(|other| other.amount).collect();
        row.record.sibling_amounts.reverse();
        self.seen.push(seen);
    }
}

impl FilePayment {
    fn is_version_of(&self, other: &Self) -> bool {
        self.id == other.id && (self.id.is_some() || self.revision != other.revision)
    }

    fn is_another_payment(&self, other: &Self) -> bool {
        let (less, more) = (self.amount.min(other.amount), self.amount.max(other.amount));
        !self.is_version_of(other)
            && less != more
            && (differs(self.frequency, other.frequency)
                || differs(self.type_text, other.type_text)
                || differs(self.payment_date, other.payment_date)
                || more >= less.saturating_mul(FACTOR))
    }
}

/// True if both values are present and differ.
fn differs<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a != b)
}

/// Hash of symbol, ex-date, type and currency of a record. The record date replaces a missing ex-date.
fn day(record: &Dividend) -> HalfHash {
    let date = record.ex_date.or(record.record_date).map_or(0, |date| date.num_days_from_ce());
    let kind = [u8::from(record.ex_date.is_some()), record.r#type as u8];
    hash([record.symbol.as_str().as_bytes(), &date.to_be_bytes(), &kind, record.currency.as_bytes()])
}

/// Hash of several byte strings. The length of each string is hashed before the string.
fn hash<const N: usize>(parts: [&[u8]; N]) -> HalfHash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&part.len().to_be_bytes()).update(part);
    }
    let mut digest = HalfHash::default();
    hasher.finalize_xof().fill(&mut digest);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a row in the form `id revision amount [frequency [payment date [type text]]]`. `-` is an absent value.
    fn row(text: &str) -> (EventRow<Dividend>, String) {
        let words: Vec<Option<&str>> =
            text.split_whitespace().map(|word| Some(word).filter(|word| *word != "-")).collect();
        let given = |place: usize| words.get(place).copied().flatten();
        let record = serde_json::json!({
            "symbol": "TEST", "amount": words[2], "currency": "USD", "type": "regular", "amount_basis": "raw",
            "ex_date": "2004-12-27", "frequency": given(3), "payment_date": given(4),
        });
        let row = EventRow {
            line: 1,
            id: words[0].map(str::to_owned),
            revision: words[1].unwrap_or("0").parse().unwrap(),
            action: Action::Put,
            observed_at: chrono::DateTime::UNIX_EPOCH,
            security_ref: None,
            record: serde_json::from_value(record).unwrap(),
        };
        (row, given(5).unwrap_or_default().to_owned())
    }

    fn named(texts: &[&str]) -> Vec<Vec<String>> {
        let mut file = SiblingDetector::default();
        let name = |text: &&str| {
            let (mut row, type_text) = row(text);
            file.set_siblings(&mut row, &type_text);
            row.record.sibling_amounts.iter().map(Decimal::to_string).collect()
        };
        texts.iter().map(name).collect()
    }

    #[test]
    fn what_makes_two_payments_of_one_day() {
        let check = |first: &str, second: &str, expected: bool| {
            for (first, second) in [(first, second), (second, first)] {
                assert_eq!(named(&[first, second])[1].len(), usize::from(expected), "{first} and {second}");
            }
        };
        check("- - 0.259", "- - 0.526", true);
        check("- - 0.20", "- - 0.30", true);
        check("- - 0.20", "- - 0.2999", false);
        check("- - 0.2725", "- - 0.2925", false);
        check("- - 0.2725 monthly", "- - 0.2925 annual", true);
        check("- - 0.2725 monthly", "- - 0.2925", false);
        check("- - 0.2725 - 2005-01-03", "- - 0.2925 - 2005-01-10", true);
        check("- - 0.2725 - 2005-01-03", "- - 0.2925", false);
        check("- - 0.2725 - - CD", "- - 0.2925 - - recurring", true);
        check("- - 0.2725 - - CD", "- - 0.2925 - - CD", false);
        check("- - 0.2725 - - CD", "- - 0.2925", false);
        check("- - 0.259", "- - 0.259 annual", false);
        check("x - 0.259", "y - 0.526", true);
        check("x 0 0.259", "x 1 0.526", false);
        check("- 0 0.259", "- 1 0.526", false);
        check("x 0 0.259", "- 1 0.526", true);
    }

    #[test]
    fn a_row_names_all_before_it() {
        let expected = [vec![], vec!["0.1".to_owned()], vec!["0.1".to_owned(), "0.2".to_owned()], vec![]];
        assert_eq!(named(&["- - 0.1", "- - 0.2", "- - 0.4", "- - 0.1 monthly"])[..3], expected[..3]);
        assert_eq!(named(&["- - 0.1", "- - 0.1", "- - 0.1"])[2], Vec::<String>::new());
    }

    #[test]
    fn other_days_and_retractions_are_nobodys_neighbours() {
        let mut file = SiblingDetector::default();
        let (original, _) = row("- - 0.1");
        file.set_siblings(&mut original.clone(), "");
        let mut named = |change: &dyn Fn(&mut EventRow<Dividend>)| {
            let (mut other, _) = row("- - 0.5");
            change(&mut other);
            file.set_siblings(&mut other, "");
            other.record.sibling_amounts.len()
        };
        assert_eq!(named(&|row| row.action = Action::Retract), 0);
        assert_eq!(named(&|row| row.record.ex_date = row.record.ex_date.and_then(|day| day.succ_opt())), 0);
        assert_eq!(
            named(&|row| (row.record.record_date, row.record.ex_date) = (row.record.ex_date, None)),
            0
        );
        assert_eq!(named(&|row| row.record.r#type = crate::event::DividendType::Special), 0);
        assert_eq!(named(&|row| row.record.currency = "CAD".into()), 0);
        assert_eq!(named(&|row| row.record.symbol = crate::symbol::Symbol::parse("TESS").unwrap()), 0);
        assert_eq!(named(&|_| {}), 1);
    }
}
