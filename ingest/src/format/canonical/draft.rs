//! A canonical record under construction: what every vendor's record becomes.

use std::borrow::Cow;

use market::event::Kind;

use super::layout::Layout;
use super::rows;
use crate::batch::accumulator::Collector;
use crate::normalize::{Cells, Fault};

/// A record of one kind, its values by the canonical names.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    kind: Kind,
    values: Vec<(&'static str, Cow<'a, str>)>,
}

impl<'a> Draft<'a> {
    /// An empty record.
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, values: Vec::with_capacity(12) }
    }

    /// The record with a value; one that is absent changes nothing.
    pub(crate) fn with<T: Into<Cow<'a, str>>>(mut self, name: &'static str, value: Option<T>) -> Self {
        self.values.extend(value.map(|value| (name, value.into())));
        self
    }

    /// Checks the record as canonical ones are, and adds it; `bytes` is the length of the text it was read from.
    pub(crate) fn accept(self, line: u64, bytes: usize, rows: &mut Collector) -> Result<(), Fault> {
        let layout = Layout::of(self.kind).ok_or_else(|| Fault::new("unknown_kind", self.kind))?;
        let mut cells = Cells::new(layout.names);
        for (name, value) in self.values {
            let index = layout.names.iter().position(|known| *known == name);
            let index = index.ok_or_else(|| Fault::new("unknown_field", name))?;
            cells.set(index, value);
        }
        rows::accept(self.kind, &cells, line, bytes, rows)
    }
}
