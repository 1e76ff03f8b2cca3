//! Reader of files with a column map: a TOML file that describes the columns of a file.
//!
//! Each record is converted to the canonical form, and validated like the canonical feed. A record of a wide table
//! gives several canonical records.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use encoding_rs::WINDOWS_1252;
use rust_decimal::Decimal;

use super::canonical::kind_layout::{FILE_FIELD, ID_FIELD};
use super::file_format::{FeedReadError, FileFormat, FileLayout, ReaderOptions, VendorFile};
use super::file_head::{FileHead, is_symbol_column};
use super::file_records::check_shape;
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::RowError;
use crate::source::csv_reader::{CsvReader, CsvRecord};
use crate::source::feed_files::{Encoding, FeedFile};
use crate::source::unpack::Transcoder;

mod cell_format;
mod column_plan;
pub(super) mod map;
mod map_definition;
mod mapped_row;
pub(super) mod name_pattern;
mod validation;

pub(crate) use cell_format::date_parser;
pub(crate) use column_plan::factor_in_name;
use column_plan::{ColumnPlan, PlannedRow};
pub(crate) use map::MONEY;
pub(super) use map::find_shipped_map;
pub use map::{ColumnMap, MapFile, SHIPPED};
pub use map_definition::MapError;
use mapped_row::{RowOwner, RowValues, accept, constants, push, read_json, symbol_of_file, without_value};

/// Reason why a row of a wide table is skipped.
const EMPTY_CELLS: &str = "all cells are empty";

/// Detects the format of a file that is read with a map.
pub(super) fn detect(
    map: &Arc<ColumnMap>,
    file: &FeedFile,
    head: &FileHead,
    options: &ReaderOptions,
) -> Result<FileFormat, String> {
    let is_reject_export = head.columns.iter().any(|name| name == ID_FIELD);
    let symbol = match map.has_symbol_column() || is_reject_export && options.symbol.is_none() {
        true => None,
        false => symbol_of_file(map, &file.label, options)?,
    };
    if head.encoding != Encoding::Csv && map.wide.is_some() {
        return Err("is JSON, which has no columns: [wide] is for tables".to_owned());
    }
    if head.encoding == Encoding::Csv && map.records.is_some() {
        return Err("is a table, which has no members: file.records is for JSON".to_owned());
    }
    // The head of a JSON file has only the member names of outer objects. A symbol column in inner objects is therefore
    // not detected here.
    let reachable =
        head.encoding != Encoding::Csv && map.records.as_ref().is_none_or(|path| !path.contains('.'));
    let keys = if reachable { head.record_keys() } else { Vec::new() };
    if let (true, Some(column)) = (symbol.is_some(), keys.iter().find(|name| is_symbol_column(name))) {
        return Err(names_symbols(map, column));
    }
    let layout = FileLayout::Mapped { map: map.clone(), is_reject_export };
    Ok(FileFormat { layout, encoding: head.encoding, symbol, date: None })
}

/// Error message for a file that has a symbol column, if the map has no symbol column.
fn names_symbols(map: &ColumnMap, column: &str) -> String {
    let symbol = map.symbol_column().unwrap_or("symbol");
    format!("has symbols in its column {column:?}: set columns.{symbol} = {column:?} in the map")
}

/// Reads all rows of a file.
pub(super) fn read(
    map: &ColumnMap,
    is_reject_export: bool,
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let owner = RowOwner::new(map, file.options, file.symbol, is_reject_export);
    let beginning = if is_reject_export { (Some(1), 1) } else { (map.first_line, map.header) };
    match file.encoding {
        Encoding::Csv if map.windows_1252 && !is_reject_export => {
            read_table(map, beginning, &owner, Transcoder::new(file.source, WINDOWS_1252), rows)
        }
        Encoding::Csv => read_table(map, beginning, &owner, file.source, rows),
        Encoding::Ndjson | Encoding::Json => read_json(map, is_reject_export, &owner, file, rows),
    }
}

/// Reads a table. `first_line` is the line of the header, or of the first record in a file without a header. If
/// `first_line` is `None`, comment lines before the table are skipped.
fn read_table(
    map: &ColumnMap,
    (first_line, header_lines): (Option<u64>, u64),
    owner: &RowOwner<'_>,
    source: impl Read,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let mut records = CsvReader::with_delimiter(source, map.delimiter)?;
    if first_line.is_some() {
        records = records.without_comments();
    }
    let names = header(first_line, header_lines, &mut records)?;
    if let (true, Some(column)) = (owner.symbol.is_some(), names.iter().find(|name| is_symbol_column(name))) {
        return Err(FeedReadError::Refused(names_symbols(map, column)));
    }
    let plan = ColumnPlan::resolve(map, &names).map_err(FeedReadError::Refused)?;
    let file_column = names.iter().position(|name| name == FILE_FIELD);
    let mut width = names.len();
    if width > 0 {
        rows.set_table_header(&table_header(&names, records.delimiter()));
    }
    while let Some(record) = records.next_record()? {
        if first_line.is_some_and(|first| record.line < first) {
            continue;
        }
        if width == 0 {
            // In a file without a header, columns are named by their numbers.
            width = record.len();
            let numbers: Vec<String> = (1..=width).map(|number| number.to_string()).collect();
            rows.set_table_header(&table_header(&numbers, record.delimiter));
        }
        if let Some(reason) = skip_reason(map, &plan, &record) {
            rows.stats.count_skipped(reason);
            continue;
        }
        let read = check_shape(width, &record, |width| format!("the file has {width} columns"))
            .and_then(|()| owner.value(file_column.and_then(|index| text(&record, index).ok())))
            .and_then(|owner| common(map, &plan, owner, &record));
        let common = match read {
            Ok(common) => common,
            Err(fault) => {
                rows.stats.records += 1;
                rows.add_reject(record.line, record.raw, fault);
                continue;
            }
        };
        for row in &plan.rows {
            let accepted = values(map, row, &record, common.clone()).and_then(|values| {
                if values.is_empty() {
                    rows.stats.count_skipped(EMPTY_CELLS.to_owned());
                    return Ok(());
                }
                accept(map, values, record.line, record.raw.len(), rows)
            });
            if let Err(fault) = accepted {
                rows.stats.records += 1;
                rows.add_reject(record.line, record.raw, fault);
            }
        }
    }
    Ok(())
}

/// Column names; empty without a header. With several header lines, the names of a column are joined by a bar.
fn header<R: Read>(
    first_line: Option<u64>,
    header_lines: u64,
    records: &mut CsvReader<R>,
) -> Result<Vec<String>, FeedReadError> {
    let mut names: Vec<String> = Vec::new();
    let mut lines = 0;
    while lines < header_lines {
        let line = records.next_record()?;
        let line =
            line.ok_or_else(|| FeedReadError::Refused("ends before the map's header line".to_owned()))?;
        if first_line.is_some_and(|first| line.line < first) {
            continue;
        }
        names.resize(names.len().max(line.len()), String::new());
        for (name, field) in names.iter_mut().zip(line.fields()) {
            let field = String::from_utf8_lossy(field);
            if !name.is_empty() && !field.trim().is_empty() {
                name.push('|');
            }
            name.push_str(field.trim());
        }
        lines += 1;
    }
    Ok(names)
}

/// Column names as one header line. Rejects are stored with this line.
fn table_header(names: &[String], delimiter: u8) -> String {
    let quoted = |name: &String| match name.contains(['"', '\n', '\r', char::from(delimiter)]) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.clone(),
    };
    names.iter().map(quoted).collect::<Vec<_>>().join(&char::from(delimiter).to_string())
}

/// Reason why the map skips a record: `rows.only` selects other words, or a column in `rows.skip_without` has no value.
/// For example, a line with totals has no date. `None` if the record is read.
fn skip_reason(map: &ColumnMap, plan: &ColumnPlan, record: &CsvRecord<'_>) -> Option<String> {
    for (selection, index) in map.only.iter().zip(&plan.selecting) {
        if !text(record, *index).is_ok_and(|cell| selection.selects(cell)) {
            return Some(selection.reason.clone());
        }
    }
    let absent =
        plan.common.iter().find(|(name, index)| text(record, *index).is_ok_and(|cell| map.skips(name, cell)));
    absent.map(|(name, _)| without_value(name))
}

/// Values that all rows of a record share.
fn common<'a>(
    map: &'a ColumnMap,
    plan: &ColumnPlan,
    owner: Option<(&'static str, String)>,
    record: &CsvRecord<'a>,
) -> Result<RowValues<'a>, RowError> {
    let mut values = constants(map, owner);
    for (name, index) in &plan.common {
        add(map, name, text(record, *index)?, plan.factor(name), &mut values)?;
    }
    Ok(values)
}

/// Values of one row. The result is empty if the row is of a wide table and all its cells are empty.
fn values<'a>(
    map: &ColumnMap,
    row: &'a PlannedRow,
    record: &CsvRecord<'a>,
    mut values: RowValues<'a>,
) -> Result<RowValues<'a>, RowError> {
    let before = values.len();
    for (name, index) in &row.cells {
        add(map, name, text(record, *index)?, None, &mut values)?;
    }
    if values.len() == before && map.wide.is_some() {
        return Ok(RowValues::new());
    }
    values.extend(row.constants.iter().map(|(name, value)| (*name, Cow::Borrowed(value.as_str()))));
    Ok(values)
}

fn text<'a>(record: &CsvRecord<'a>, index: usize) -> Result<&'a str, RowError> {
    std::str::from_utf8(record.field(index)).map_err(|_| {
        let message = format_args!(
            "column {} is not UTF-8: add file.encoding = \"windows-1252\" to the map",
            index + 1
        );
        RowError::new("malformed_row", message)
    })
}

fn add<'a>(
    map: &ColumnMap,
    name: &'static str,
    text: &'a str,
    factor: Option<Decimal>,
    values: &mut RowValues<'a>,
) -> Result<(), RowError> {
    let (text, currency) = map.split_currency_unit(name, text);
    if let Some(value) = map.convert_cell(name, text, factor)? {
        push(map, name, value, currency, values)?;
    }
    Ok(())
}
