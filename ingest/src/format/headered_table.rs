//! Reader of tables with a header row. All formats with such tables use this reader.

use std::io::Read;

use super::file_format::FeedReadError;
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::RowError;
use crate::price::bar_parser::{PriceCells, PriceFields};
use crate::source::csv_reader::{CsvReader, CsvRecord};

/// Placeholder for the position of a column that the table does not have. No record has a field at this position, so a
/// reader gets an empty field.
pub(super) const NONE: usize = usize::MAX;

/// Table after its header was read.
pub(super) struct HeaderedTable<R> {
    records: CsvReader<R>,
    header: Vec<String>,
    /// Header line of the file.
    text: String,
}

impl<R: Read> HeaderedTable<R> {
    /// Reads the header, and normalizes each column name with `spelling`. A trailing comma does not add a column.
    pub(super) fn open(reader: R, spelling: fn(&str) -> String) -> Result<Self, FeedReadError> {
        let mut records = CsvReader::new(reader)?;
        let header = records.next_record()?.map(|header| {
            let names = header.fields().map(|name| spelling(String::from_utf8_lossy(name).trim()));
            let mut names: Vec<String> = names.collect();
            while names.len() > 1 && header.field(names.len() - 1).trim_ascii().is_empty() {
                names.pop();
            }
            (names, String::from_utf8_lossy(header.raw).trim_end().to_owned())
        });
        let (header, text) =
            header.ok_or_else(|| FeedReadError::Refused("is empty: a header row is needed".to_owned()))?;
        Ok(Self { records, header, text })
    }

    pub(super) fn header(&self) -> &[String] {
        &self.header
    }

    /// Position of the first column with one of these names, or [`NONE`].
    pub(super) fn position_of(&self, names: &[&str]) -> usize {
        self.header.iter().position(|column| names.contains(&column.as_str())).unwrap_or(NONE)
    }

    /// Calls `row` for every record. A record is rejected if `row` fails or if the number of fields is wrong.
    pub(super) fn for_each_record(
        mut self,
        rows: &mut RowAccumulator,
        mut row: impl FnMut(&CsvRecord<'_>, &mut RowAccumulator) -> Result<(), RowError>,
    ) -> Result<(), FeedReadError> {
        rows.set_table_header(&self.text);
        while let Some(record) = self.records.next_record()? {
            // Concatenated files repeat their header, so a repeated header is not a record.
            if record.raw.trim_ascii_end() == self.text.as_bytes() {
                continue;
            }
            rows.stats.records += 1;
            let expected = |width| format!("the header has {width}: quote fields that contain commas");
            let accepted =
                check_shape(self.header.len(), &record, expected).and_then(|()| row(&record, rows));
            if let Err(fault) = accepted {
                rows.add_reject(record.line, record.raw, fault);
            }
        }
        Ok(())
    }
}

/// Fails if the record has an unclosed quote or the wrong number of fields. Additional empty fields are allowed. The
/// closure `expected` describes the right number for the error message.
pub(super) fn check_shape(
    width: usize,
    record: &CsvRecord<'_>,
    expected: impl Fn(usize) -> String,
) -> Result<(), RowError> {
    if record.unclosed {
        let message = "a quoted field is not closed: double the quotes inside it";
        return Err(RowError::new("malformed_row", message));
    }
    let excess = (width..record.len()).any(|index| !record.field(index).is_empty());
    if record.len() < width || excess {
        let message = format_args!("{} fields where {}", record.len(), expected(width));
        return Err(RowError::new("malformed_row", message));
    }
    Ok(())
}

/// Positions of the price columns in a table.
pub(super) type PriceColumns = PriceFields<usize>;

impl PriceColumns {
    /// Finds the price columns by their canonical names, such as `open` and `trade_count`.
    pub(super) fn find_in<R: Read>(table: &HeaderedTable<R>) -> Self {
        Self::from_columns(|name| match name {
            "trade_count" => table.position_of(&["trade_count", "tradecount"]),
            name => table.position_of(&[name]),
        })
    }

    /// Price cells of a record.
    pub(super) fn cells<'a>(&self, record: &CsvRecord<'a>) -> PriceCells<'a> {
        PriceCells {
            open: record.field(self.open),
            high: record.field(self.high),
            low: record.field(self.low),
            close: record.field(self.close),
            volume: record.field(self.volume),
            vwap: record.field(self.vwap),
            trade_count: record.field(self.trade_count),
        }
    }
}
