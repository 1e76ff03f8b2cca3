//! Cells of a canonical CSV record.

use std::borrow::Cow;

use super::layout::Layout;
use crate::normalize::{Cells, Fault};
use crate::source::records::Record;

/// Cells of a CSV record, by column name.
pub(super) fn cells_of<'a>(
    layout: &Layout,
    columns: &[Option<usize>],
    record: &Record<'a>,
) -> Result<Cells<'a>, Fault> {
    let mut cells = Cells::new(layout.names);
    for (field, column) in record.fields().zip(columns) {
        let Some(index) = column else { continue };
        let text = std::str::from_utf8(field).map_err(|_| not_text(layout.names[*index]))?;
        cells.set(*index, Cow::Borrowed(text));
    }
    Ok(cells)
}

fn not_text(column: &str) -> Fault {
    Fault::new("malformed_row", format_args!("{column} is not UTF-8 text: save the file as UTF-8"))
}
