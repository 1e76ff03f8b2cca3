//! Builder of a canonical record, for the vendor formats.

use std::borrow::Cow;

use market::event::Kind;

use super::kind_layout::KindLayout;
use super::row_conversion;
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::{RecordCells, RowError};

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
