//! Conversion of a CSV record to cells by column name. Text that is not UTF-8 is an error.

use std::borrow::Cow;

use super::kind_layout::KindLayout;
use crate::normalize::{RecordCells, RowError};
use crate::source::csv_reader::CsvRecord;

/// Cells of a CSV record, by column name.
pub(super) fn cells_of<'a>(
    layout: &KindLayout,
    columns: &[Option<usize>],
    record: &CsvRecord<'a>,
) -> Result<RecordCells<'a>, RowError> {
    let mut cells = RecordCells::new(layout.names);
    for (field, column) in record.fields().zip(columns) {
        let Some(index) = column else { continue };
        let text = std::str::from_utf8(field).map_err(|_| not_text(layout.names[*index]))?;
        cells.set(*index, Cow::Borrowed(text));
    }
    Ok(cells)
}

fn not_text(column: &str) -> RowError {
    RowError::new("malformed_row", format_args!("{column} is not UTF-8 text: save the file as UTF-8"))
}
