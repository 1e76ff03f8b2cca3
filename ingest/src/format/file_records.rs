//! Records of a file: rows of a table with a header, or objects of a JSON document.
//!
//! Field names are normalized to be the same in CSV and JSON.

use std::borrow::Cow;
use std::io::Read;

use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::file_format::{FeedReadError, VendorFile};
use super::file_head::normalize_column_name;
use super::raw_json::RawJson;
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::{RowError, is_absent_value, parse_symbol};
use crate::price::bar_parser::{PriceCells, PriceFields};
use crate::source::csv_reader::{CsvReader, CsvRecord, LineReader};
use crate::source::feed_files::Encoding;

/// Maximum size of a JSON document, in bytes. The limit is needed because the whole document is in memory.
const MAX_DOCUMENT: u64 = 256 * 1024 * 1024;

/// Record of a vendor's file: a row of a table, or an object of a JSON document.
pub(super) struct VendorRow<'a> {
    names: Cow<'a, [String]>,
    cells: Vec<Cow<'a, str>>,
    /// Line of the record in a table or in NDJSON. In a JSON document, number of the object, from 1.
    pub(super) line: u64,
    /// Source text of the record.
    pub(super) raw: &'a [u8],
}

impl<'a> VendorRow<'a> {
    /// Record with the fields of a row of a table. `header` has the normalized names.
    pub(super) fn of_record(header: &'a [String], record: &CsvRecord<'a>) -> Self {
        let cells = record.fields().map(String::from_utf8_lossy).collect();
        Self { names: Cow::Borrowed(header), cells, line: record.line, raw: record.raw }
    }

    /// Record with the members of a JSON object. Members are skipped if their value is a list, an object or null.
    pub(super) fn of_json(object: RawJson<'a>, line: u64) -> Self {
        let mut row =
            Self { names: Cow::Owned(Vec::new()), cells: Vec::new(), line, raw: object.raw().as_bytes() };
        row.add(object);
        row
    }

    /// Record with the members of an object, and of the object that encloses it.
    pub(super) fn of_object(object: RawJson<'a>, wrapper: Option<RawJson<'a>>, line: u64) -> Self {
        let mut row = Self::of_json(object, line);
        wrapper.into_iter().for_each(|wrapper| row.add(wrapper));
        row
    }

    /// Adds the members of a JSON object. A field that already has a value is not changed.
    pub(super) fn add(&mut self, object: RawJson<'a>) {
        for (name, value) in object.members() {
            if let Some(text) = value.text() {
                self.set(&name, text);
            }
        }
    }

    pub(super) fn set(&mut self, name: &str, text: Cow<'a, str>) {
        self.names.to_mut().push(normalize_field_name(name));
        self.cells.push(text);
    }

    /// True if the record has a field with one of these names, even without a value.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Names and values of all fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().zip(&self.cells).map(|(name, cell)| (name.as_str(), cell.trim()))
    }

    /// First value among the fields with these names; `None` if no such field has a value.
    pub(super) fn text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|wanted| {
            let index = self.names.iter().position(|name| name == wanted)?;
            let text = self.cells.get(index)?.trim();
            let absent =
                is_absent_value(text.as_bytes()) || matches!(text, "None" | "-" | "--" | "NaN" | "nan");
            (!absent).then_some(text)
        })
    }

    /// First value among the fields with these names, as bytes; empty if no such field has a value.
    pub(super) fn bytes(&self, names: &[&str]) -> &[u8] {
        self.text(names).unwrap_or_default().as_bytes()
    }

    /// Date in the first field with a value, without the midnight time that some vendors write.
    pub(super) fn date(&self, names: &[&str]) -> Option<&str> {
        self.text(names).map(strip_midnight)
    }

    /// Percentage in the first field with a value. A number with a percent sign is already a percentage. A number
    /// without it is a fraction, and is multiplied by 100.
    pub(super) fn percent(&self, names: &[&str]) -> Option<String> {
        self.text(names).map(|text| match text.strip_suffix('%') {
            Some(percent) => percent.trim().to_owned(),
            None => scale_number(text, Decimal::ONE_HUNDRED),
        })
    }

    /// Symbol in a field. Fails if the field has no value, or an invalid symbol.
    pub(super) fn symbol(&self, name: &str) -> Result<Symbol, RowError> {
        parse_symbol(name, self.text(&[name]).ok_or_else(|| RowError::missing_value(name))?)
    }
}

/// Normalizes a name. A name of one letter stays unchanged, because Massive's `T` and `t` differ. A leading number is
/// removed: Alpha Vantage's `4. close` becomes `close`.
fn normalize_field_name(name: &str) -> String {
    if name.len() == 1 {
        return name.to_owned();
    }
    let unnumbered = name.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(". ");
    normalize_column_name(unnumbered.unwrap_or(name))
}

/// Removes the time of midnight from a date such as `2015-01-02T00:00:00.000Z`. Other text stays unchanged.
pub(super) fn strip_midnight(text: &str) -> &str {
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some("00:00:00")) => day,
        _ => text,
    }
}

/// Multiplies a number by a factor. Other text stays unchanged, and a later check reports it.
pub(super) fn scale_number(text: &str, factor: Decimal) -> String {
    let number = market::decimal::parse_figure(text).ok();
    let product = number.and_then(|number| number.value.checked_mul(factor));
    product.map_or_else(|| text.to_owned(), |product| product.normalize().to_string())
}

/// Counts a record, and rejects it if `read` fails.
pub(super) fn count_row(
    row: &VendorRow<'_>,
    rows: &mut RowAccumulator,
    read: &mut impl FnMut(&VendorRow<'_>, &mut RowAccumulator) -> Result<(), RowError>,
) {
    rows.stats.records += 1;
    if let Err(fault) = read(row, rows) {
        rows.add_reject(row.line, row.raw, fault);
    }
}

/// Calls `each` for every JSON document of a file, with its line. A document is one line of NDJSON, or the whole file.
pub(super) fn read_documents(
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
    mut each: impl FnMut(RawJson<'_>, u64, &mut RowAccumulator),
) -> Result<(), FeedReadError> {
    if file.encoding == Encoding::Ndjson {
        let mut lines = LineReader::new(file.source)?;
        while let Some((number, line)) = lines.next_line()? {
            let text = String::from_utf8_lossy(line);
            if text.trim().is_empty() {
                continue;
            }
            match RawJson::parse(&text) {
                Ok(document) => each(document, number, rows),
                Err(error) => {
                    rows.stats.records += 1;
                    rows.add_reject(
                        number,
                        line,
                        RowError::new("malformed_row", format_args!("not JSON: {error}")),
                    );
                }
            }
        }
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.source.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_DOCUMENT {
        return Err(FeedReadError::Refused(
            "is one JSON document of more than 256 MiB: write one record a line and name it .ndjson"
                .to_owned(),
        ));
    }
    let text = String::from_utf8_lossy(&bytes);
    let document = RawJson::parse(&text).map_err(|error| {
        FeedReadError::Refused(format!("is not a whole JSON document: {error}; fetch it again"))
    })?;
    each(document, 1, rows);
    Ok(())
}

/// Calls `read` for every record of a file: the rows of a table, or the objects of a JSON document.
pub(super) fn read_rows(
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
    mut read: impl FnMut(&VendorRow<'_>, &mut RowAccumulator) -> Result<(), RowError>,
) -> Result<(), FeedReadError> {
    if file.encoding == Encoding::Csv {
        let table = HeaderedTable::open(file.source, normalize_field_name)?;
        let header = table.header.clone();
        return table
            .for_each_record(rows, |record, rows| read(&VendorRow::of_record(&header, record), rows));
    }
    read_objects(file, rows, |object, wrapper, line, rows| {
        count_row(&VendorRow::of_object(object, wrapper, line), rows, &mut read);
    })
}

/// Calls `each` for every record of a JSON file. Arguments: the record, the object that encloses it, and a number. The
/// number is the line in NDJSON, or the position of the record in a document, from 1.
pub(super) fn read_objects(
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
    mut each: impl FnMut(RawJson<'_>, Option<RawJson<'_>>, u64, &mut RowAccumulator),
) -> Result<(), FeedReadError> {
    let by_line = file.encoding == Encoding::Ndjson;
    let mut number = 0;
    read_documents(file, rows, |document, line, rows| {
        find_records(document, None, MAX_NESTING, &mut |object, wrapper| {
            number += 1;
            each(object, wrapper, if by_line { line } else { number }, rows);
        });
    })
}

/// Maximum depth of nested lists in the search for records.
const MAX_NESTING: u32 = 8;

/// Calls `each` for every record of a document: each item of a list, the value of `results` or `data`, or the document
/// itself. The second argument is the enclosing object.
fn find_records<'a>(
    value: RawJson<'a>,
    wrapper: Option<RawJson<'a>>,
    nesting: u32,
    each: &mut impl FnMut(RawJson<'a>, Option<RawJson<'a>>),
) {
    if value.is_list() && nesting > 0 {
        for item in value.items() {
            find_records(item, wrapper, nesting - 1, each);
        }
        return;
    }
    let inner = value.get("results").or_else(|| value.get("data"));
    match inner.filter(|inner| inner.is_list() || inner.is_object()) {
        Some(inner) if wrapper.is_none() => find_records(inner, Some(value), nesting, each),
        // An empty page of a paged response has no `results`. Such a page is not a record.
        None if wrapper.is_none() && is_empty_page(value) => {}
        _ => each(value, wrapper),
    }
}

fn is_empty_page(value: RawJson<'_>) -> bool {
    value.get("request_id").is_some() && value.get("status").is_some()
}

/// Placeholder for the position of a column that the table does not have. No record has a field at this position, so a
/// reader gets an empty field.
pub(super) const NONE: usize = usize::MAX;

/// Table after its header was read.
pub(super) struct HeaderedTable<R> {
    records: CsvReader<R>,
    pub(super) header: Vec<String>,
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
