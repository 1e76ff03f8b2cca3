//! Canonical feed: CSV files and JSON records in the format of this service. The file name gives the kind of the rows.
//! A JSON record may contain its kind instead.

use market::event::Kind;

use super::file_format::{FeedReadError, FileFormat, FileLayout, VendorFile};
use super::file_head::FileHead;
use super::file_records::{HeaderedTable, read_objects};
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::RowError;
use crate::source::csv_reader::{CsvRecord, LineReader};
use crate::source::feed_files::{Encoding, FeedFile};

pub(crate) mod kind_layout;
mod price_rows;
mod record_builder;
mod row_conversion;

use kind_layout::{KindLayout, kind_of};
pub(super) use record_builder::{RecordBuilder, fields, parse_ratio};

/// Recognizes a canonical file: CSV by name and columns, JSON by its first record.
pub(super) fn detect(file: &FeedFile, head: &FileHead) -> Option<Result<FileFormat, String>> {
    let encoding = head.encoding;
    let canonical =
        |kind| FileFormat { layout: FileLayout::Canonical(kind), encoding, symbol: None, date: None };
    let named = kind_of(file.stem()).and_then(KindLayout::for_kind);
    if head.encoding == Encoding::Csv {
        let layout = named?;
        // A vendor's table may have the file name of a canonical file. The table is treated as canonical only if it has
        // a key column of the kind, or if its vendor is not recognized.
        let has_key_column =
            layout.key.iter().any(|name| head.columns.iter().any(|column| column.eq_ignore_ascii_case(name)));
        let is_canonical = has_key_column || head.guess_origin().is_none();
        return is_canonical.then(|| match adjusted_without_basis(file.stem(), layout, &head.columns) {
            Some(reason) => Err(reason),
            None => Ok(canonical(Some(layout.kind))),
        });
    }
    let keys = if head.encoding == Encoding::Json { head.record_keys() } else { head.columns.clone() };
    let has = |name: &&str| keys.iter().any(|key| key == name);
    let empty = head.encoding == Encoding::Ndjson && keys.is_empty();
    let kind = if empty || has(&"kind") {
        None
    } else {
        Some(named.filter(|layout| layout.key.iter().chain(layout.required).all(has))?.kind)
    };
    Some(Ok(canonical(kind)))
}

/// Reason for refusing a file that is named as adjusted, but has no column for the share basis. `None` for other files.
fn adjusted_without_basis(stem: &str, layout: &KindLayout, columns: &[String]) -> Option<String> {
    let basis = layout.names.iter().find(|name| matches!(**name, "basis" | "amount_basis"))?;
    let says = |column: &String| column.eq_ignore_ascii_case(basis);
    if !stem.to_ascii_lowercase().contains("adj") || columns.iter().any(says) {
        return None;
    }
    Some(format!(
        "is named adjusted, and has no column {basis}: add it (split_adjusted, or raw), or read the file under a map that sets {basis} in [constants] (ingest map FILE); values that are adjusted for dividends too cannot be used"
    ))
}

/// Text for an error message: the name and content that a canonical CSV or JSON file needs.
pub(super) fn expectation(head: &FileHead) -> &'static str {
    match head.encoding {
        Encoding::Csv => {
            "name the file by its kind (prices.csv, dividends-2024.csv) and give it that kind's columns"
        }
        Encoding::Ndjson | Encoding::Json => {
            "give every record a kind, or name the file by its kind (prices.ndjson) and give each record the members of that kind"
        }
    }
}

/// Reads a file. The argument `kind` comes from the file name.
pub(super) fn read(
    kind: Option<Kind>,
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    match kind.and_then(KindLayout::for_kind).filter(|_| file.encoding == Encoding::Csv) {
        Some(layout) => read_csv(layout, file, rows),
        None => read_records(kind, file, rows),
    }
}

/// Reads a CSV file of one kind.
fn read_csv(
    layout: &'static KindLayout,
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let table = HeaderedTable::open(file.source, str::to_ascii_lowercase)?;
    let columns =
        layout.columns(&table.header, file.options.ignore_unknown).map_err(FeedReadError::Refused)?;
    if layout.kind == Kind::Price {
        return price_rows::read_prices(layout, &columns, table, rows);
    }
    table.for_each_record(rows, |record, rows| read_record(layout, &columns, record, rows))
}

fn read_record(
    layout: &KindLayout,
    columns: &[Option<usize>],
    record: &CsvRecord<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let mut cells = layout.cells(columns, record)?;
    cells.set_zone(rows.zone);
    if let Some(kind) = cells.text("kind").filter(|kind| *kind != layout.kind.as_str()) {
        let message = format_args!("kind {kind:?} in a file of kind {}: use one file per kind", layout.kind);
        return Err(RowError::new("unknown_kind", message));
    }
    row_conversion::convert_record(layout.kind, &cells, record.line, record.raw.len(), rows)
}

/// Reads JSON records, one per line or all in one document. The argument `kind` applies to records that do not name
/// their kind.
fn read_records(
    kind: Option<Kind>,
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let ignore_unknown = file.options.ignore_unknown;
    let take = |record: &[u8], line: u64, rows: &mut RowAccumulator| {
        rows.stats.records += 1;
        let accepted =
            record_builder::parse_cells(record, kind, ignore_unknown).and_then(|(kind, mut cells)| {
                cells.set_zone(rows.zone);
                row_conversion::convert_record(kind, &cells, line, record.len(), rows)
            });
        if let Err(fault) = accepted {
            rows.add_reject(line, record, fault);
        }
    };
    if file.encoding == Encoding::Json {
        return read_objects(file, rows, |object, _, line, rows| take(object.raw().as_bytes(), line, rows));
    }
    let mut lines = LineReader::new(file.source)?;
    while let Some((number, line)) = lines.next_line()? {
        if !line.trim_ascii().is_empty() {
            take(line, number, rows);
        }
    }
    Ok(())
}
