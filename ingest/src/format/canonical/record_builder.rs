//! Canonical records from the values of a vendor's row, and from JSON. Numbers stay text, so they lose no digits.

use std::borrow::Cow;
use std::fmt;

use market::event::Kind;
use rust_decimal::Decimal;

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
#[derive(Debug)]
pub(crate) struct RecordBuilder<'a> {
    kind: Kind,
    values: Vec<(&'static str, Cow<'a, str>)>,
}

impl<'a> RecordBuilder<'a> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, values: Vec::with_capacity(12) }
    }

    /// Adds a value if it is present.
    pub(crate) fn with_value<T: Into<Cow<'a, str>>>(mut self, name: &'static str, value: Option<T>) -> Self {
        self.values.extend(value.map(|value| (name, value.into())));
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
        self,
        line: u64,
        bytes: usize,
        rows: &mut RowAccumulator,
    ) -> Result<(), RowError> {
        let layout =
            KindLayout::for_kind(self.kind).ok_or_else(|| RowError::new("unknown_kind", self.kind))?;
        let mut cells = RecordCells::new(layout.names);
        for (name, value) in self.values {
            let index = layout.names.iter().position(|known| *known == name);
            let index = index.ok_or_else(|| RowError::new("unknown_field", name))?;
            cells.set(index, value);
        }
        cells.set_zone(rows.zone());
        row_conversion::convert_record(self.kind, &cells, line, bytes, rows)
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
        let Some(index) = layout.names.iter().position(|known| *known == name) else {
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
