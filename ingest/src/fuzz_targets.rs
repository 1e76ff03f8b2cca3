//! Fuzz targets for the parsers of untrusted bytes. The targets drop the parsed rows; they only look for panics.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::NaiveDate;
use clap::ValueEnum;
use market::symbol::Symbol;

use crate::batch::row_accumulator::RowChunk;
use crate::format::{ColumnMap, FileFormat, FileHead, FormatChoice, ReaderOptions};
use crate::infer::collect_rows;
use crate::source::csv_reader::{CsvReader, LineReader};
use crate::source::feed_files::{Encoding, FeedFile, Packing};

/// File names with their encodings. The formats read a kind, a symbol or a date from such names.
const NAMES: [(&str, Encoding); 5] = [
    ("A.csv", Encoding::Csv),
    ("prices.csv", Encoding::Csv),
    ("constituents-financials_2018-02-08.csv", Encoding::Csv),
    ("A.json", Encoding::Json),
    ("dividends.ndjson", Encoding::Ndjson),
];

/// Reads a file of any format. `choice` selects the format and the file name.
pub fn parse_file(choice: u8, bytes: &[u8]) {
    let choices = FormatChoice::value_variants();
    let choice = usize::from(choice);
    let name = NAMES[choice % NAMES.len()];
    parse_with(
        ReaderOptions { choice: choices[choice / NAMES.len() % choices.len()], ..options() },
        name,
        bytes,
    );
}

/// Reads a file with a column map, if the map is valid.
pub fn parse_mapped_file(map: &str, bytes: &[u8]) {
    if let Ok(map) = ColumnMap::parse(map) {
        let map = Arc::new(map);
        for name in [NAMES[0], NAMES[3]] {
            parse_with(ReaderOptions { map: Some(map.clone()), ..options() }, name, bytes);
        }
    }
}

/// Reads the bytes as lines, and then as CSV records.
pub fn parse_records(bytes: &[u8]) {
    if let Ok(mut lines) = LineReader::new(bytes) {
        while let Ok(Some(_)) = lines.next_line() {}
    }
    for delimiter in [None, Some(b';')] {
        let Ok(mut records) = CsvReader::with_delimiter(bytes, delimiter) else { return };
        while let Ok(Some(record)) = records.next_record() {
            record.fields().for_each(drop);
        }
    }
}

fn options() -> ReaderOptions {
    let today = NaiveDate::from_ymd_opt(2024, 3, 15).unwrap_or_default();
    ReaderOptions { symbol: Symbol::parse("A").ok(), today, ..ReaderOptions::default() }
}

fn parse_with(options: ReaderOptions, (label, encoding): (&str, Encoding), bytes: &[u8]) {
    let file = FeedFile {
        location: PathBuf::new().into(),
        label: label.to_owned(),
        packing: Packing::Plain,
        encoding,
    };
    let Ok(head) = FileHead::read(&file, &mut &*bytes) else { return };
    let Ok(format) = FileFormat::detect(&file, &head, &options) else { return };
    for piece in collect_rows(&format, label, bytes, &options).2 {
        if let RowChunk::Prices(batch, symbols) = piece {
            drop(batch.cut_into_record_batches(&symbols));
        }
    }
}
