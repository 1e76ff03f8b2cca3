//! Reader of tables that a map describes. It reads files without a header, wide tables, other notations of numbers and
//! dates, and symbols in file names.
//!
//! Each record becomes a canonical record, with the same checks and rejects.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use market::decimal::parse_decimal;
use market::event::Kind;
use market::metrics::currency::Currency;
use rust_decimal::Decimal;

use super::canonical::RecordBuilder;
use super::canonical::kind_layout::ID_FIELD;
use super::file_format::{FeedReadError, FileFormat, ReaderOptions, SymbolScope, VendorFile};
use super::file_head::{FileHead, is_symbol_column};
use super::file_symbol;
use super::raw_json::RawJson;
use super::split_ratio;
use super::vendor_row::{read_documents, read_objects};
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::RowError;
use crate::source::csv_reader::{CsvReader, CsvRecord};
use crate::source::feed_files::{Encoding, FeedFile};

mod column_name_pattern;
mod column_plan;
mod date_format;
pub(super) mod map;
mod map_definition;
mod map_file;
mod number_format;
mod validation;
mod windows_1252;

use column_plan::{ColumnPlan, PlannedRow};
pub(crate) use date_format::parse_date_format;
pub use map::ColumnMap;
use map::{CURRENCY, DIRECTION, MONEY, RATIO};
use map_definition::ColumnLocation;
pub use map_definition::MapError;
pub(super) use map_file::find_shipped_map;
pub use map_file::{MapFile, SHIPPED};
use windows_1252::Windows1252;

/// Values of a row, by canonical name.
type RowValues<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Detects the format of a file under a map.
pub(super) fn detect(
    map: &Arc<ColumnMap>,
    file: &FeedFile,
    head: &FileHead,
    options: &ReaderOptions,
) -> Result<FileFormat, String> {
    let symbol = if map.has_symbol_column() {
        None
    } else {
        let symbol_from = options.symbol_from.clone().or_else(|| map.file_name().cloned());
        let options = ReaderOptions { symbol_from, ..options.clone() };
        file_symbol::resolve_file_symbol(file, SymbolScope::File, &options)?
            .map(|symbol| map.apply_aliases(symbol))
            .transpose()?
    };
    if head.encoding != Encoding::Csv && map.wide.is_some() {
        return Err("is JSON, which has no columns: [wide] is for tables".to_owned());
    }
    if head.encoding == Encoding::Csv && map.records.is_some() {
        return Err("is a table, which has no members: file.records is for JSON".to_owned());
    }
    // Members of the pages around deeper lists are out of reach.
    let reachable =
        head.encoding != Encoding::Csv && map.records.as_ref().is_none_or(|path| !path.contains('.'));
    let keys = if reachable { head.record_keys() } else { Vec::new() };
    if let (true, Some(column)) = (symbol.is_some(), keys.iter().find(|name| is_symbol_column(name))) {
        return Err(names_symbols(map, column));
    }
    let is_reject_export = head.columns.iter().any(|name| name == ID_FIELD);
    Ok(FileFormat::Mapped { map: map.clone(), encoding: head.encoding, symbol, is_reject_export })
}

/// Reason to refuse a file whose rows contain symbols although the map expects one symbol per file.
fn names_symbols(map: &ColumnMap, column: &str) -> String {
    let symbol = map.symbol_column().unwrap_or("symbol");
    format!("names symbols in its column {column:?}: say columns.{symbol} = {column:?} in the map")
}

/// Reads all rows of a file.
pub(super) fn read(
    map: &ColumnMap,
    is_reject_export: bool,
    reading: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let owner = map.symbol_column().zip(reading.symbol.map(ToString::to_string));
    let beginning = if is_reject_export {
        HeaderPosition { line: Some(1), header: 1 }
    } else {
        HeaderPosition { line: map.first_line, header: map.header }
    };
    match reading.encoding {
        Encoding::Csv if map.windows_1252 && !is_reject_export => {
            read_table(map, beginning, owner, Windows1252::new(reading.source), rows)
        }
        Encoding::Csv => read_table(map, beginning, owner, reading.source, rows),
        Encoding::Ndjson | Encoding::Json => read_json(map, is_reject_export, owner, reading, rows),
    }
}

/// Position and size of a table's header.
#[derive(Clone, Copy)]
struct HeaderPosition {
    /// Line of the header, or of the first record of a file without a header. With `None`, comment lines may come
    /// before it.
    line: Option<u64>,
    /// Number of header lines.
    header: u64,
}

fn read_table(
    map: &ColumnMap,
    beginning: HeaderPosition,
    owner: Option<(&'static str, String)>,
    source: impl Read,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let mut records = CsvReader::with_delimiter(source, map.delimiter)?;
    if beginning.line.is_some() {
        records = records.without_comments();
    }
    let names = header(beginning, &mut records)?;
    if let (true, Some(column)) = (owner.is_some(), names.iter().find(|name| is_symbol_column(name))) {
        return Err(FeedReadError::Refused(names_symbols(map, column)));
    }
    let plan = ColumnPlan::resolve(map, &names).map_err(FeedReadError::Refused)?;
    let mut width = names.len();
    if width > 0 {
        rows.set_table_header(&table_header(&names, records.delimiter()));
    }
    while let Some(record) = records.next_record()? {
        if beginning.line.is_some_and(|first| record.line < first) {
            continue;
        }
        if width == 0 {
            // Unnamed columns get their numbers as names.
            width = record.len();
            let numbers: Vec<String> = (1..=width).map(|number| number.to_string()).collect();
            rows.set_table_header(&table_header(&numbers, record.delimiter));
        }
        if skips(map, &plan, &record) {
            continue;
        }
        let read = check_shape(width, &record).and_then(|()| common(map, &plan, owner.as_ref(), &record));
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
                // Records with only empty cells are skipped.
                if values.is_empty() {
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
    beginning: HeaderPosition,
    records: &mut CsvReader<R>,
) -> Result<Vec<String>, FeedReadError> {
    let mut names: Vec<String> = Vec::new();
    let mut lines = 0;
    while lines < beginning.header {
        let line = records.next_record()?;
        let line =
            line.ok_or_else(|| FeedReadError::Refused("ends before the map's header line".to_owned()))?;
        if beginning.line.is_some_and(|first| line.line < first) {
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

/// Fails if a record has another number of columns than the table. Additional empty columns at the end are ignored.
fn check_shape(width: usize, record: &CsvRecord<'_>) -> Result<(), RowError> {
    if record.unclosed {
        return Err(RowError::new(
            "malformed_row",
            "a quoted field is not closed: double the quotes inside it",
        ));
    }
    let excess = (width..record.len()).any(|index| !record.field(index).is_empty());
    if record.len() < width || excess {
        let message = format_args!("{} fields where the file has {width} columns", record.len());
        return Err(RowError::new("malformed_row", message));
    }
    Ok(())
}

/// True if the map skips the record, because a required value is missing. A line with totals, for example, has no date.
fn skips(map: &ColumnMap, plan: &ColumnPlan, record: &CsvRecord<'_>) -> bool {
    plan.common.iter().any(|(name, index)| text(record, *index).is_ok_and(|cell| map.skips(name, cell)))
}

/// Values that all rows of a record share.
fn common<'a>(
    map: &'a ColumnMap,
    plan: &ColumnPlan,
    owner: Option<&'a (&'static str, String)>,
    record: &CsvRecord<'a>,
) -> Result<RowValues<'a>, RowError> {
    let mut values: RowValues<'a> =
        owner.into_iter().chain(&map.constants).map(|(name, value)| (*name, value.as_str().into())).collect();
    for (name, index) in &plan.common {
        add(map, name, text(record, *index)?, &mut values)?;
    }
    Ok(values)
}

/// Values of one row; empty if all its cells in a wide table are empty.
fn values<'a>(
    map: &ColumnMap,
    row: &'a PlannedRow,
    record: &CsvRecord<'a>,
    mut values: RowValues<'a>,
) -> Result<RowValues<'a>, RowError> {
    let before = values.len();
    for (name, index) in &row.cells {
        add(map, name, text(record, *index)?, &mut values)?;
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
    values: &mut RowValues<'a>,
) -> Result<(), RowError> {
    let (text, currency) = map.split_unit(name, text);
    if let Some(value) = map.convert_cell(name, text)? {
        push(map, name, value, currency, values)?;
    }
    Ok(())
}

/// Adds a converted value, and the currency of its unit.
fn push<'a>(
    map: &ColumnMap,
    name: &'static str,
    value: Cow<'a, str>,
    currency: Option<&str>,
    values: &mut RowValues<'a>,
) -> Result<(), RowError> {
    if name == CURRENCY {
        return set_currency(map, value, values);
    }
    values.push((name, value));
    currency.map_or(Ok(()), |currency| set_currency(map, Cow::Owned(currency.to_owned()), values))
}

/// Sets the currency of a row. A currency column or unit has precedence over the constant of the map.
fn set_currency<'a>(
    map: &ColumnMap,
    currency: Cow<'a, str>,
    values: &mut RowValues<'a>,
) -> Result<(), RowError> {
    let constant = map.constants.iter().find(|(name, _)| *name == CURRENCY).map(|(_, value)| value.as_str());
    match values.iter_mut().find(|(name, _)| *name == CURRENCY) {
        None => values.push((CURRENCY, currency)),
        Some((_, known)) if Some(known.as_ref()) == constant => *known = currency,
        Some((_, known)) if *known == currency => {}
        Some((_, known)) => {
            return Err(RowError::new("bad_value", format_args!("the row is in {known} and in {currency}")));
        }
    }
    Ok(())
}

/// Converts prices in a minor unit to the major unit, and drops their currency.
fn price_values(mut values: RowValues<'_>) -> Result<RowValues<'_>, RowError> {
    let Some(at) = values.iter().position(|(name, _)| *name == CURRENCY) else { return Ok(values) };
    let (_, text) = values.remove(at);
    let currency = Currency::parse(&text).ok_or_else(|| {
        let message =
            format_args!("currency {text:?} is not a currency: write its ISO 4217 code, such as USD");
        RowError::new("bad_value", message)
    })?;
    for (name, value) in
        values.iter_mut().filter(|(name, _)| currency.minor.is_some() && MONEY.contains(name))
    {
        let parsed =
            parse_decimal(value).map_err(|error| RowError::invalid_number(name, value.as_bytes(), error))?;
        *value = Cow::Owned(currency.to_major(parsed.value).to_string());
    }
    Ok(values)
}

/// Old and new shares of a split. If a direction is given, it decides which of the two numbers is larger.
fn split_sides(ratio: &str, direction: Option<&str>) -> Result<(Decimal, Decimal), RowError> {
    let (from, to) = split_ratio::parse_ratio(ratio).ok_or_else(|| {
        let message = format_args!("ratio {ratio:?} is invalid: write new to old, such as 4:1 or 4.0");
        RowError::new("bad_number", message)
    })?;
    match direction {
        None => Ok((from, to)),
        Some("forward") => Ok((from.min(to), from.max(to))),
        Some("reverse") => Ok((from.max(to), from.min(to))),
        Some(other) => {
            let message = format_args!(
                "direction {other:?} must be forward or reverse: name the words in [aliases.direction]"
            );
            Err(RowError::new("bad_value", message))
        }
    }
}

/// Validates a row and adds it, unless the map skips the row.
fn accept(
    map: &ColumnMap,
    values: RowValues<'_>,
    line: u64,
    bytes: usize,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let is_zero = |text: &str| text.bytes().all(|byte| b"-+0.".contains(&byte));
    let has = |name: &&str| values.iter().any(|(known, value)| known == name && !is_zero(value));
    if !map.skip_without.iter().all(has) {
        return Ok(());
    }
    if !map.units.is_empty() && !values.iter().any(|(name, _)| *name == CURRENCY) {
        let message =
            "the number has no unit of the map's [units]: add its unit, or constants.currency for it";
        return Err(RowError::new("bad_value", message));
    }
    let values = if map.kind == Kind::Price { price_values(values)? } else { values };
    let direction =
        values.iter().find(|(name, _)| *name == DIRECTION).map(|(_, value)| value.to_ascii_lowercase());
    let mut draft = RecordBuilder::new(map.kind);
    for (name, value) in values {
        draft = match name {
            RATIO => {
                let (from, to) = split_sides(&value, direction.as_deref())?;
                draft.with_value("from", Some(from.to_string())).with_value("to", Some(to.to_string()))
            }
            DIRECTION => draft,
            name => draft.with_value(name, Some(value)),
        };
    }
    draft.validate_into(line, bytes, rows)?;
    rows.stats.records += 1;
    Ok(())
}

fn read_json(
    map: &ColumnMap,
    is_reject_export: bool,
    owner: Option<(&'static str, String)>,
    reading: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let mut paths = Vec::new();
    for (name, place) in &map.columns {
        // In exported rejects, an unnamed column has its number as name.
        paths.push(match place {
            ColumnLocation::Name(path) => (*name, Cow::Borrowed(path.as_str())),
            ColumnLocation::Number(_) if !is_reject_export => {
                let message = format!("is JSON, which has no column numbers: columns.{name} must be a name");
                return Err(FeedReadError::Refused(message));
            }
            ColumnLocation::Number(number) => (*name, Cow::Owned(number.to_string())),
        });
    }
    let take = |object: RawJson<'_>, wrapper: Option<RawJson<'_>>, line: u64, rows: &mut RowAccumulator| {
        let read = object_values(map, &paths, owner.as_ref(), object, wrapper)
            .and_then(|values| accept(map, values, line, object.raw().len(), rows));
        if let Err(fault) = read {
            rows.stats.records += 1;
            rows.add_reject(line, object.raw().as_bytes(), fault);
        }
    };
    // Exported rejects are not inside a page.
    let Some(path) = map.records.as_deref().filter(|_| !is_reject_export) else {
        return read_objects(reading, rows, take);
    };
    let by_line = reading.encoding == Encoding::Ndjson;
    let mut number = 0;
    read_documents(reading, rows, |document, line, rows| {
        records_at(document, Some(path), None, &mut |object, page| {
            number += 1;
            take(object, page, if by_line { line } else { number }, rows);
        });
    })?;
    match number {
        0 => Err(FeedReadError::Refused(format!(
            "has no records at {path:?}, the path of the map's file.records"
        ))),
        _ => Ok(()),
    }
}

/// Calls `each` with every object at a path of members, and with the enclosing object. If a list is on the path, all
/// its items are read.
fn records_at<'a>(
    value: RawJson<'a>,
    path: Option<&str>,
    page: Option<RawJson<'a>>,
    each: &mut impl FnMut(RawJson<'a>, Option<RawJson<'a>>),
) {
    // A list inside a list is passed as a whole, and rejected because it is not an object.
    let items = if value.is_list() { value.items() } else { vec![value] };
    let step = path.map(|path| path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest))));
    for item in items {
        match step {
            None => each(item, page),
            Some((name, rest)) => {
                if let Some(inner) = item.get(name) {
                    records_at(inner, rest, Some(item), each);
                }
            }
        }
    }
}

/// Values of an object. Values that the object lacks may come from the enclosing object.
fn object_values<'a>(
    map: &'a ColumnMap,
    paths: &[(&'static str, Cow<'_, str>)],
    owner: Option<&'a (&'static str, String)>,
    object: RawJson<'a>,
    wrapper: Option<RawJson<'a>>,
) -> Result<RowValues<'a>, RowError> {
    if !object.is_object() {
        return Err(RowError::new("malformed_row", "is no object with members"));
    }
    let mut values: RowValues<'a> =
        owner.into_iter().chain(&map.constants).map(|(name, value)| (*name, value.as_str().into())).collect();
    for (name, path) in paths {
        let found = member(object, path).or_else(|| member(wrapper?, path)).and_then(RawJson::text);
        if let Some(text) = found {
            let (text, currency) = map.split_unit(name, &text);
            if let Some(value) = map.convert_cell(name, text)? {
                push(map, name, Cow::Owned(value.into_owned()), currency, &mut values)?;
            }
        }
    }
    Ok(values)
}

/// Finds a member by name or by path, for example `quote.close`.
fn member<'a>(object: RawJson<'a>, path: &str) -> Option<RawJson<'a>> {
    object.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        member(object.get(first)?, rest)
    })
}
