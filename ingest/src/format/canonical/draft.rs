//! Canonical record under construction. Every vendor's record becomes one.

use std::borrow::Cow;

use market::event::Kind;

use super::layout::Layout;
use super::rows;
use crate::batch::accumulator::Collector;
use crate::normalize::{Cells, Fault};

/// Record of one kind, with values by canonical name.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    kind: Kind,
    values: Vec<(&'static str, Cow<'a, str>)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, values: Vec::with_capacity(12) }
    }

    /// Adds a value; an absent value changes nothing.
    pub(crate) fn with<T: Into<Cow<'a, str>>>(mut self, name: &'static str, value: Option<T>) -> Self {
        self.values.extend(value.map(|value| (name, value.into())));
        self
    }

    /// Validates the record like a canonical one, and adds it. `bytes` is the length of its source text.
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
