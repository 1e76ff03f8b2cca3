//! Builder of a canonical record, for the vendor formats.

use std::borrow::Cow;

use market::event::Kind;
use rust_decimal::Decimal;

use super::kind_layout::KindLayout;
use super::row_conversion;
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::vendor_row::VendorRow;
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
