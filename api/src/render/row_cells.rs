//! Selected values of a row, each in its own cell: a JSON value or the text of a CSV cell.
//!
//! The row is serialized once. A formatter of [`serde_json`] follows the names of the members. It directs a selected
//! value to its cell and drops every other value.
//!
//! Invariant: the digits of a number are those that the row's serializer writes.

use std::cell::RefCell;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use telemetry::escape_formula;

/// Cells of one row. They are reused for further rows.
#[derive(Debug)]
pub(super) struct RowCells<'a> {
    /// Path of each cell's value in the row, for example `symbol` or `quote.price`.
    paths: &'a [&'static str],
    is_csv: bool,
    state: RefCell<CellState>,
}

#[derive(Debug, Default)]
struct CellState {
    cells: Vec<Cell>,
    /// Index of the cell that receives the bytes; `None` between the selected values.
    current: Option<usize>,
}

#[derive(Debug, Default)]
struct Cell {
    bytes: Vec<u8>,
    /// True if the row has this member.
    is_present: bool,
    /// True for a text in a CSV cell.
    is_text: bool,
}

impl<'a> RowCells<'a> {
    pub(super) fn new(paths: &'a [&'static str], is_csv: bool) -> Self {
        Self { paths, is_csv, state: RefCell::default() }
    }

    /// Reads the selected values of a row.
    pub(super) fn read(&mut self, row: &impl Serialize) -> Result<(), serde_json::Error> {
        let state = self.state.get_mut();
        state.current = None;
        state.cells.resize_with(self.paths.len(), Cell::default);
        for cell in &mut state.cells {
            cell.bytes.clear();
            (cell.is_present, cell.is_text) = (false, false);
        }
        let selector = CellSelector {
            row: self,
            path: String::new(),
            parents: vec![],
            in_key: false,
            depth: 0,
            next: 0,
        };
        row.serialize(&mut Serializer::with_formatter(CellWriter(&self.state), selector))
    }

    /// Writes the row as a JSON object with the selected members.
    pub(super) fn write_json(&mut self, out: &mut Vec<u8>) {
        out.push(b'{');
        let members = self.paths.iter().zip(&self.state.get_mut().cells);
        for (index, (name, cell)) in members.filter(|(_, cell)| cell.is_present).enumerate() {
            out.extend_from_slice(if index > 0 { b",\"" } else { b"\"" });
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(&cell.bytes);
        }
        out.push(b'}');
    }

    /// Writes the row as a CSV record. A text is escaped if a spreadsheet would run it as a formula.
    pub(super) fn write_csv(&mut self, writer: &mut csv::Writer<Vec<u8>>) -> Result<(), csv::Error> {
        for cell in &self.state.get_mut().cells {
            match cell.is_text {
                true => {
                    writer.write_field(escape_formula(String::from_utf8_lossy(&cell.bytes).into_owned()))?
                }
                false => writer.write_field(&cell.bytes)?,
            }
        }
        writer.write_record(None::<&[u8]>)
    }
}

/// Writer to the current cell.
struct CellWriter<'c>(&'c RefCell<CellState>);

impl Write for CellWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let CellState { cells, current } = &mut *self.0.borrow_mut();
        if let Some(cell) = current.and_then(|index| cells.get_mut(index)) {
            cell.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formatter that selects the cell of each value.
struct CellSelector<'c> {
    row: &'c RowCells<'c>,
    /// Path of the current member.
    path: String,
    /// Lengths of the paths of the open objects outside of cells.
    parents: Vec<usize>,
    /// True while the name of a member outside of cells is written.
    in_key: bool,
    /// Number of open lists and objects in the current cell.
    depth: usize,
    /// Index of the cell after the one that was selected last. Members and cells usually have the same order.
    next: usize,
}

impl CellSelector<'_> {
    fn is_in_cell(&self) -> bool {
        self.row.state.borrow().current.is_some()
    }

    /// True if the current value is the whole value of a CSV cell, and not a part of a nested value.
    fn is_csv_cell(&self) -> bool {
        self.row.is_csv && self.depth == 0 && self.is_in_cell()
    }

    fn begin_nested(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth += usize::from(self.is_in_cell());
        writer.write_all(bracket)
    }

    fn end_nested(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth -= usize::from(self.is_in_cell());
        writer.write_all(bracket)
    }
}

impl Formatter for CellSelector<'_> {
    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_csv_cell() { Ok(()) } else { writer.write_all(b"null") }
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_csv_cell() {
            let CellState { cells, current } = &mut *self.row.state.borrow_mut();
            current.and_then(|index| cells.get_mut(index)).into_iter().for_each(|cell| cell.is_text = true);
            return Ok(());
        }
        writer.write_all(b"\"")
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_csv_cell() { Ok(()) } else { writer.write_all(b"\"") }
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.in_key {
            self.path.push_str(fragment);
        }
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        if !self.is_csv_cell() {
            return serde_json::ser::CompactFormatter.write_char_escape(writer, escape);
        }
        let byte = match escape {
            CharEscape::Quote => b'"',
            CharEscape::ReverseSolidus => b'\\',
            CharEscape::Solidus => b'/',
            CharEscape::Backspace => 0x08,
            CharEscape::FormFeed => 0x0c,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(byte) => byte,
        };
        writer.write_all(&[byte])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin_nested(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end_nested(writer, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if !self.is_in_cell() {
            self.parents.push(self.path.len());
        }
        self.begin_nested(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if !self.is_in_cell() {
            self.parents.pop();
        }
        self.end_nested(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if self.is_in_cell() {
            return if first { Ok(()) } else { writer.write_all(b",") };
        }
        self.path.truncate(self.parents.last().copied().unwrap_or_default());
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.in_key = true;
        Ok(())
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.in_key) {
            let paths = self.row.paths;
            let index = match paths.get(self.next).is_some_and(|path| *path == self.path) {
                true => Some(self.next),
                false => paths.iter().position(|path| *path == self.path),
            };
            if let Some(index) = index {
                self.next = index + 1;
                self.row.state.borrow_mut().cells[index].is_present = true;
            }
            self.row.state.borrow_mut().current = index;
        }
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.depth > 0 { writer.write_all(b":") } else { Ok(()) }
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        if self.depth == 0 {
            self.row.state.borrow_mut().current = None;
        }
        Ok(())
    }
}
