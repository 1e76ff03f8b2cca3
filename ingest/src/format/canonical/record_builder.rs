//! Canonical records from the values of a vendor's row, and from JSON. Numbers stay text, so they lose no digits.
//!
//! Split ratios written as one number of new shares per old share: 7.0 is 1 old to 7 new shares, and 0.1 is 10 to 1. A
//! rounded 1/n is n to 1, if only one n fits.

use std::borrow::Cow;
use std::fmt;

use market::event::Kind;
use rust_decimal::{Decimal, RoundingStrategy};

use super::kind_layout::{EXPORT_FIELDS, KindLayout, LISTS};
use super::row_conversion;
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::file_records::VendorRow;
use crate::format::raw_json::{ObjectMembers, find_repeated_member, string};
use crate::normalize::{RecordCells, RowError};

/// Reads values from a vendor's row, each with its canonical column name.
///
/// `row.text => name, website: weburl` reads the fields `name` and `weburl` with the method `text`. In
/// `eps_ttm: dilutedepsttm | eps`, the first field with a value is used.
macro_rules! fields {
    (@names $column:ident) => { &[stringify!($column)] };
    (@names $column:ident $($field:ident)+) => { &[$(stringify!($field)),+] };
    ($row:ident.$read:ident => $($column:ident $(: $($field:ident)|+)?),+ $(,)?) => {
        [$((stringify!($column), $row.$read(fields!(@names $column $($($field)+)?)))),+]
    };
}
pub(crate) use fields;

/// Record of one kind, with values by canonical column name.
pub(crate) struct RecordBuilder<'a> {
    kind: Kind,
    cells: RecordCells<'a>,
}

impl<'a> RecordBuilder<'a> {
    pub(crate) fn new(kind: Kind) -> Self {
        let names = KindLayout::for_kind(kind).map_or(&[][..], |layout| layout.names);
        Self { kind, cells: RecordCells::new(names) }
    }

    /// Adds a value if it is present.
    pub(crate) fn with_value<T: Into<Cow<'a, str>>>(mut self, name: &'static str, value: Option<T>) -> Self {
        let index = self.cells.position(name);
        debug_assert!(index.is_some(), "a {} has no column {name}", self.kind);
        if let (Some(index), Some(value)) = (index, value) {
            self.cells.set(index, value.into());
        }
        self
    }

    /// Adds the values that are present.
    pub(crate) fn with_values<T: Into<Cow<'a, str>>>(
        self,
        values: impl IntoIterator<Item = (&'static str, Option<T>)>,
    ) -> Self {
        values.into_iter().fold(self, |record, (name, value)| record.with_value(name, value))
    }

    /// Adds the old and the new shares of a split.
    pub(crate) fn with_shares(self, (from, to): (Decimal, Decimal)) -> Self {
        self.with_value("from", Some(from.to_string())).with_value("to", Some(to.to_string()))
    }

    /// Validates the record like a record of a canonical file, and adds it to `rows`. `row` is the vendor's row with
    /// the values of the record.
    pub(crate) fn add_of_row(self, row: &VendorRow<'_>, rows: &mut RowAccumulator) -> Result<(), RowError> {
        self.validate_into(row.line, row.raw.len(), rows)
    }

    /// Validates the record like a record of a canonical file, and adds it. `bytes` is the length of the source text.
    pub(crate) fn validate_into(
        mut self,
        line: u64,
        bytes: usize,
        rows: &mut RowAccumulator,
    ) -> Result<(), RowError> {
        self.cells.set_zone(rows.zone);
        row_conversion::convert_record(self.kind, &self.cells, line, bytes, rows)
    }
}

/// Parses a record into its kind and its cells. `unnamed` is the kind of a record without the member `kind`.
pub(super) fn parse_cells(
    line: &[u8],
    unnamed: Option<Kind>,
    ignore_unknown: bool,
) -> Result<(Kind, RecordCells<'_>), RowError> {
    let malformed =
        |error: &dyn fmt::Display| RowError::new("malformed_row", format_args!("not a JSON object: {error}"));
    let text = std::str::from_utf8(line).map_err(|error| malformed(&error))?;
    let members: ObjectMembers<'_> = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    if let Some(name) = members.repeated_name() {
        return Err(repeated_member(&name));
    }
    let ObjectMembers(members) = members;
    let kind = members.iter().find(|(name, _)| name == "kind").and_then(|(_, value)| string(value.get()));
    let named = kind.as_ref().map_or(unnamed, |kind| kind.parse().ok());
    let layout = named.and_then(KindLayout::for_kind).ok_or_else(|| {
        let found = kind.map_or_else(|| "missing".to_owned(), |kind| format!("{kind:?}"));
        let known =
            super::kind_layout::ALL.iter().map(|layout| layout.kind.as_str()).collect::<Vec<_>>().join(", ");
        RowError::new("unknown_kind", format_args!("kind is {found}: it must be one of {known}"))
    })?;
    let mut cells = RecordCells::new(layout.names);
    for (name, value) in members {
        let Some(index) = cells.position(&name) else {
            if ignore_unknown || EXPORT_FIELDS.contains(&name.as_ref()) {
                continue;
            }
            let message =
                format_args!("a {} has no field {name:?}: rename it, or add --ignore-unknown", layout.kind);
            return Err(RowError::new("unknown_field", message));
        };
        if let Some(value) = scalar(layout.names[index], value.get())? {
            cells.set(index, value);
        }
    }
    Ok((layout.kind, cells))
}

fn repeated_member(name: &str) -> RowError {
    RowError::new("malformed_row", format_args!("the member {name:?} appears twice: keep one of them"))
}

/// JSON value as the text of a table cell; `None` for null. A list is returned as JSON text.
fn scalar<'a>(name: &str, value: &'a str) -> Result<Option<Cow<'a, str>>, RowError> {
    match value.as_bytes().first() {
        Some(b'"') => Ok(string(value)),
        Some(b'n') => Ok(None),
        Some(b'[' | b'{') if !LISTS.contains(&name) => {
            Err(RowError::new("bad_value", format_args!("{name} must be one value, not a list or an object")))
        }
        Some(b'[' | b'{') => match find_repeated_member(value) {
            Some(name) => Err(repeated_member(&name)),
            None => Ok(Some(Cow::Borrowed(value))),
        },
        _ => Ok(Some(Cow::Borrowed(value))),
    }
}

/// Maximum denominator of a fraction that is recognized from its first digits, such as 2/3 from 0.6666. Fractions 1/n
/// have no limit.
const MAX_CUT_DENOMINATOR: i64 = 20;

/// Old and new shares as the smallest whole numbers; `None` for an invalid ratio.
fn whole_shares(ratio: Decimal) -> Option<(Decimal, Decimal)> {
    if ratio <= Decimal::ZERO {
        return None;
    }
    if let Some(old) = unit_fraction(ratio) {
        return Some((old, Decimal::ONE));
    }
    let ratio = ratio.normalize();
    let (new, old) = (ratio.mantissa(), 10i128.pow(ratio.scale()));
    let divisor = greatest_common(new, old);
    let exact = (old / divisor, new / divisor);
    let (from, to) = if ratio.scale() >= 4 { cut_short(ratio).unwrap_or(exact) } else { exact };
    Some((Decimal::from(from), Decimal::from(to)))
}

/// Parses a ratio of new to old shares, such as `4:1`, `4 for 1` or `4.0`. Returns the old shares, then the new shares.
pub(crate) fn parse_ratio(text: &str) -> Option<(Decimal, Decimal)> {
    let sides =
        text.split_once([':', '/']).or_else(|| text.split_once(" for ")).or_else(|| text.split_once("-for-"));
    match sides {
        Some((to, from)) => {
            let number = |text: &str| {
                market::decimal::parse_decimal(text.trim())
                    .ok()
                    .map(|p| p.value)
                    .filter(|v| *v > Decimal::ZERO)
            };
            Some((number(from)?, number(to)?))
        }
        None => whole_shares(market::decimal::parse_decimal(text).ok()?.value),
    }
}

/// Number n of old shares per new share. The ratio must be exactly 1/n, or fit only one n after rounding.
fn unit_fraction(ratio: Decimal) -> Option<Decimal> {
    let rounds = |old: Decimal| {
        let quotient = Decimal::ONE.checked_div(old)?;
        Some(quotient.round_dp_with_strategy(ratio.scale(), RoundingStrategy::MidpointAwayFromZero) == ratio)
    };
    let old = Decimal::ONE.checked_div(ratio)?.round();
    let is_exact = old.checked_mul(ratio) == Some(Decimal::ONE);
    let is_only =
        rounds(old)? && !rounds(old + Decimal::ONE)? && (old <= Decimal::ONE || !rounds(old - Decimal::ONE)?);
    (ratio < Decimal::ONE && (is_exact || is_only)).then_some(old)
}

/// Old and new shares of a truncated or rounded fraction: 3 and 2 for 0.6666. Only denominators up to
/// [`MAX_CUT_DENOMINATOR`] are tried.
fn cut_short(ratio: Decimal) -> Option<(i128, i128)> {
    let step = Decimal::new(1, ratio.scale());
    (1..=MAX_CUT_DENOMINATOR).find_map(|from| {
        let to = (ratio * Decimal::from(from)).round();
        let distance = (to / Decimal::from(from) - ratio).abs();
        (to > Decimal::ZERO && distance < step).then(|| (i128::from(from), to.mantissa()))
    })
}

fn greatest_common(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_small_whole_numbers() {
        for (text, from, to) in [
            ("7.0", 1, 7),
            ("2", 1, 2),
            ("0.1", 10, 1),
            ("1.5", 2, 3),
            ("0.3333", 3, 1),
            ("0.066667", 15, 1),
            ("0.033333", 30, 1),
            ("0.0333", 30, 1),
            ("0.33", 3, 1),
            ("0.25", 4, 1),
            ("0.05", 20, 1),
            ("0.001", 1000, 1),
            ("0.04", 25, 1),
            ("0.022222", 45, 1),
            // Several reverse splits round to these ratios.
            ("0.3", 10, 3),
            ("0.07", 100, 7),
            ("0.9", 10, 9),
            ("0.6667", 3, 2),
            ("1.333333", 3, 4),
            ("1.0027455", 2_000_000, 2_005_491),
            ("0.4406", 5000, 2203),
            ("4:1", 1, 4),
            ("3 for 2", 2, 3),
            ("1-for-10", 10, 1),
            ("1:8", 8, 1),
        ] {
            assert_eq!(parse_ratio(text), Some((Decimal::from(from), Decimal::from(to))), "{text}");
        }
        for text in ["0", "-2", "x", "4:0", ":"] {
            assert_eq!(parse_ratio(text), None, "{text}");
        }
    }
}
