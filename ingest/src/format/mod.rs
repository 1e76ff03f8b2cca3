//! Feed formats: one file per format, with its detection and its reader.
//!
//! The format of a file is detected before any row is loaded. A file of an unknown format is refused with a message
//! about its probable origin. So is a file that contains an error response instead of data: a web page, a binary file, a
//! message or a throttle notice. The exchange's time zone is detected from the UTC times in a file's date columns.

use std::collections::BTreeMap;
use std::io::Read;

use chrono::{NaiveDate, NaiveDateTime};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use telemetry::shorten;

use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::{
    ExchangeZone, UtcTimeInterpretation, abbreviate, interpret_utc_times, is_absent_value, parse_date,
    parse_utc_time,
};
use crate::source::csv_reader::CsvReader;
use crate::source::feed_files::{Encoding, FeedFile};

pub mod canonical;
mod column_map;
mod file_format;
mod file_head;
mod file_records;
mod file_symbol;
mod raw_json;
#[cfg(test)]
pub(crate) mod tests;
mod trading_day;
mod vendors;

pub use column_map::name_pattern::SymbolPattern;
pub use column_map::{ColumnMap, MapError, MapFile, SHIPPED};
pub(crate) use column_map::{MONEY, date_parser, factor_in_name};
pub use file_format::{FeedReadError, FileFormat, FormatChoice, ReaderOptions, VendorFormat};
use file_format::{FileLayout, SymbolScope, VendorFile};
pub use file_head::FileHead;
pub(crate) use file_head::{
    canonical_column_of, is_word_of, meaning_of, normalize_column_name, without_remark, words_of,
    words_of_topic,
};
use raw_json::RawJson;
pub(crate) use raw_json::find_repeated_member;

/// Values of `--format`. The first vendor format in this order that recognizes a file is used. The canonical format is
/// used if no vendor format recognizes the file.
static CHOICES: [FormatChoice; 14] = [
    FormatChoice::Auto,
    FormatChoice::Canonical,
    FormatChoice::Vendor(&vendors::raw_prices::WIKI),
    FormatChoice::Vendor(&vendors::raw_prices::MARKETSTACK),
    FormatChoice::Vendor(&vendors::raw_prices::TIINGO),
    FormatChoice::Vendor(&vendors::alphavantage::FORMAT),
    FormatChoice::Vendor(&vendors::eodhd::FORMAT),
    FormatChoice::Vendor(&vendors::massive::FORMAT),
    FormatChoice::Vendor(&vendors::ishares::FORMAT),
    FormatChoice::Vendor(&vendors::reference_tables::SP500),
    FormatChoice::Vendor(&vendors::reference_tables::ECB),
    FormatChoice::Vendor(&vendors::reference_tables::LISTINGS),
    FormatChoice::Vendor(&vendors::sec::FORMAT),
    FormatChoice::Vendor(&vendors::yahoo::FORMAT),
];

impl ValueEnum for FormatChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::Auto => "Recognise each file by its header or JSON shape",
            Self::Canonical => {
                "This project's own CSV or NDJSON; CSV files are named by their kind (prices.csv, dividends-2024.csv.gz)"
            }
            Self::Vendor(vendor) => vendor.about,
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl FileFormat {
    /// Detects the format of a file from its head.
    pub fn detect(file: &FeedFile, head: &FileHead, options: &ReaderOptions) -> Result<Self, String> {
        if let Some(reason) = refusal_reason(head) {
            return Err(reason);
        }
        if let Some(map) = &options.map {
            return column_map::detect(map, file, head, options);
        }
        if head.encoding == Encoding::Csv && head.is_blank() {
            return Err("is empty: a header row is needed".to_owned());
        }
        let (vendors, canonical) = match &options.choice {
            FormatChoice::Auto => (CHOICES.as_slice(), true),
            FormatChoice::Canonical => ([].as_slice(), true),
            vendor => (std::slice::from_ref(vendor), false),
        };
        let mut vendors = vendors.iter().filter_map(|choice| choice.vendor());
        let found = vendors.find_map(|vendor| Some((vendor, (vendor.detect)(head)?)));
        if let Some((vendor, symbol_scope)) = found {
            let symbol_scope = symbol_scope?;
            if let (SymbolScope::File, Some(column)) = (symbol_scope, head.symbol_column()) {
                return Err(format!(
                    "has symbols in its column {column:?}, but a {} file has one symbol: read it under a map that names the symbol column (ingest map FILE)",
                    vendor.name
                ));
            }
            let date = if symbol_scope == SymbolScope::Dated { date_in(file.stem()) } else { None };
            let symbol = file_symbol::resolve_file_symbol(&file.label, symbol_scope, options)?;
            return Ok(Self { layout: FileLayout::Vendor(vendor), encoding: head.encoding, symbol, date });
        }
        let found = if canonical { canonical::detect(file, head) } else { None };
        found.unwrap_or_else(|| Err(refusal(head, options.choice)))
    }

    /// Reads all rows of a file into `rows`.
    pub(crate) fn read(
        &self,
        reader: &mut dyn Read,
        options: &ReaderOptions,
        rows: &mut RowAccumulator,
    ) -> Result<(), FeedReadError> {
        let Self { layout, encoding, symbol, date } = self;
        let (encoding, date, symbol) = (*encoding, *date, symbol.as_ref());
        let file = VendorFile { source: reader, encoding, symbol, date, options };
        let of_prices = match layout {
            // A map converts its prices to the major unit.
            FileLayout::Mapped { map, .. } if map.price_currency().is_some() => map.price_currency(),
            _ => options.currency.clone(),
        };
        rows.set_currency(options.currency.clone(), of_prices);
        match layout {
            FileLayout::Canonical(kind) => canonical::read(*kind, file, rows),
            FileLayout::Vendor(vendor) => (vendor.read)(file, rows),
            FileLayout::Mapped { map, is_reject_export } => {
                column_map::read(map, *is_reject_export, file, rows)
            }
        }
    }
}

/// First date in a file's name: `constituents-financials_2018-02-08`.
fn date_in(stem: &str) -> Option<NaiveDate> {
    stem.as_bytes().windows(10).find_map(parse_date)
}

/// Error message for a file that no format fits. It contains the likely origin of the file and a hint.
fn refusal(head: &FileHead, choice: FormatChoice) -> String {
    if head.display_beginning().is_empty() {
        return "is empty".to_owned();
    }
    let wanted = match choice {
        FormatChoice::Auto => "has no format that ingest loads".to_owned(),
        FormatChoice::Canonical => format!("is not canonical: {}", canonical::expectation(head)),
        FormatChoice::Vendor(vendor) => format!("is not {}: {}", vendor.name, vendor.needs),
    };
    if let Some(map) = column_map::find_shipped_map(&head.columns) {
        return format!("{wanted}; a shipped map reads it: see `ingest map {map}`, then add --map {map}");
    }
    let mut vendors = CHOICES.iter().filter_map(|choice| choice.vendor());
    if let Some(VendorFormat { name, .. }) =
        vendors.find(|vendor| matches!((vendor.detect)(head), Some(Ok(_))))
    {
        return format!("{wanted}; it looks like {name}: omit --format or use --format {name}");
    }
    match (head.guess_origin(), head.encoding) {
        (Some(guess), _) => format!("{wanted}; it looks like {guess}"),
        (None, Encoding::Csv) => {
            format!(
                "{wanted}; its columns are: {}; `ingest map FILE` proposes a map for it",
                head.display_columns()
            )
        }
        (None, _) => format!(
            "{wanted}; it begins with: {}; a map can locate its values: [columns] has the names of the members, and records in [file] is the path of the record list, such as \"data.rows\" (example of a map: `ingest map nasdaq`)",
            head.display_beginning()
        ),
    }
}

/// Maximum length of a service's message in a reason, in characters.
const MAX_NOTICE_CHARS: usize = 300;

/// Reason for refusing a file without data; `None` if the file may contain data.
fn refusal_reason(head: &FileHead) -> Option<String> {
    let text = head.text.trim_start_matches('\u{feff}').trim_start();
    let lower = text.get(..text.len().min(15)).unwrap_or_default().to_ascii_lowercase();
    if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| lower.starts_with(tag)) {
        return Some(format!("is a web page, not data{}: fetch it again", title(text)));
    }
    if lower.starts_with("<?xml") {
        return Some("is XML, which is not supported: fetch it as CSV or JSON".to_owned());
    }
    if !text.contains('\n') && text.trim_end().contains('\r') {
        return Some("has CR line ends: write it with LF line ends".to_owned());
    }
    if text.starts_with("version https://git-lfs.") {
        return Some("is a Git LFS pointer, not the data: fetch the file with git lfs pull".to_owned());
    }
    if text.starts_with("PAR1") {
        return Some("is Parquet in an archive, which is not supported: unpack it first".to_owned());
    }
    if text.starts_with("PK\u{3}\u{4}") {
        return Some(
            "is a zip archive or a workbook: name an archive .zip, save a workbook as CSV".to_owned(),
        );
    }
    if text.contains('\0') {
        return Some("is binary, neither text nor a supported packing (.gz, .zst, .zip)".to_owned());
    }
    let ServiceMessage { message, throttled } = match head.encoding {
        Encoding::Csv => parse_single_line(text)?,
        _ => parse_service_message(text).or_else(|| parse_single_line(text))?,
    };
    Some(if throttled {
        format!("is a throttle notice, not data: {message:?}; ask again later")
    } else {
        format!("is a service's message, not data: {message:?}")
    })
}

/// Service message in a text; `None` unless the text is a single line of words. Tables, lists of symbols and JSON are
/// not messages.
fn parse_single_line(text: &str) -> Option<ServiceMessage> {
    let line = text.trim();
    let is_sentence = line.contains(' ') && !line.contains(['\n', '\r', ',', ';', '\t', '|', '{', '[']);
    is_sentence
        .then(|| ServiceMessage { throttled: is_throttle_notice(line), message: abbreviate(line.as_bytes()) })
}

/// Title of a web page, for an error message.
fn title(text: &str) -> String {
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or_else(String::new, |(title, _)| format!(" ({})", abbreviate(title.trim().as_bytes())))
}

/// Message that a service sends instead of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceMessage {
    pub(crate) message: String,
    /// True for a throttle notice. The same request may succeed later.
    pub(crate) throttled: bool,
}

/// Parses a JSON response that contains only a message, such as `{"error": "unknown symbol"}`; `None` for any other
/// text.
pub(crate) fn parse_service_message(text: &str) -> Option<ServiceMessage> {
    let answer = RawJson::parse(text).ok()?;
    let members = answer.members();
    let is_message = |name: &str| is_word_of("error message", &normalize_column_name(name));
    let accompanies = |name: &str| is_word_of("accompanying an error message", &normalize_column_name(name));
    let only = members.iter().all(|(name, _)| is_message(name) || accompanies(name));
    let (_, message) = members.iter().find(|(name, _)| is_message(name)).filter(|_| only)?;
    let message = message.text().unwrap_or_else(|| message.raw().into());
    let throttled = is_throttle_notice(&message);
    Some(ServiceMessage { message: shorten(&message, MAX_NOTICE_CHARS), throttled })
}

/// True if a message is a throttle notice.
pub(crate) fn is_throttle_notice(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    words_of_topic("throttle notice").iter().any(|words| message.contains(words))
}

/// Names of columns with the day of a row. Names that end with `date` are recognized too.
const DAYS: [&str; 6] = ["", "datetime", "timestamp", "time", "day", "asof"];

impl FileFormat {
    /// Time zone of the exchange, if the file gives days as UTC times of local midnights: `2021-06-30 22:00:00Z` is 1
    /// July in Berlin. `None` for files with a map.
    ///
    /// # Errors
    /// The first rows are too few to decide between local dates and UTC dates.
    pub(crate) fn exchange_zone(&self, head: &FileHead) -> Result<Option<ExchangeZone>, String> {
        if self.is_mapped() {
            return Ok(None);
        }
        let mut found = None;
        for (first, times) in utc_time_columns(head) {
            match interpret_utc_times(&times) {
                UtcTimeInterpretation::LocalDays(zone) => found = found.or(Some(zone)),
                UtcTimeInterpretation::Uncertain(zone) => {
                    return Err(format!(
                        "has UTC times instead of dates, such as {first}, and too few rows to infer their time zone: if they are midnights in the zone of the exchange, read it under a map with dates.zone = \"{zone}\" (ingest map FILE)"
                    ));
                }
                UtcTimeInterpretation::AsWritten | UtcTimeInterpretation::Times => {}
            }
        }
        Ok(found)
    }
}

/// Date columns in which all values are UTC times. Each result has the first value as text, for messages, and all times
/// of the column.
fn utc_time_columns(head: &FileHead) -> Vec<(String, Vec<NaiveDateTime>)> {
    let columns = if head.encoding == Encoding::Csv { table_columns(head) } else { json_members(&head.text) };
    let mut found = Vec::new();
    for (name, cells) in columns {
        let name = normalize_column_name(&name);
        let dated = DAYS.contains(&name.as_str()) || name.ends_with("date") && !name.ends_with("update");
        let times: Option<Vec<NaiveDateTime>> = cells.iter().map(|cell| parse_utc_time(cell)).collect();
        if let (Some(times), Some(first), true) = (times, cells.first(), dated) {
            found.push((first.clone(), times));
        }
    }
    found
}

/// Cells of the columns that have a UTC time in the first row, by column name.
fn table_columns(head: &FileHead) -> BTreeMap<String, Vec<String>> {
    let mut columns = BTreeMap::new();
    let is_utc_time =
        |index: &usize| head.first_row.get(*index).is_some_and(|cell| parse_utc_time(cell).is_some());
    let time_columns: Vec<usize> = (0..head.columns.len()).filter(is_utc_time).collect();
    // The last line of the sample may be incomplete.
    let text = head.text.rsplit_once('\n').map_or(head.text.as_str(), |(whole, _)| whole);
    let Ok(mut records) = CsvReader::new(text.as_bytes()) else { return columns };
    let mut header = true;
    while let (false, Ok(Some(record))) = (time_columns.is_empty(), records.next_record()) {
        for index in &time_columns {
            let cell = String::from_utf8_lossy(record.field(*index)).trim().to_owned();
            if !header && !is_absent_value(cell.as_bytes()) {
                columns.entry(head.columns[*index].clone()).or_insert_with(Vec::new).push(cell);
            }
        }
        header = false;
    }
    columns
}

/// String values in a JSON text, by member name. The values of one name may come from many objects.
fn json_members(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // The text is split at quotes, so pieces are alternately outside and inside a string. After an escaped quote, this
    // order is reversed, and text between strings is taken for names. This does no harm, because such a text is never
    // the name of a date column.
    let pieces: Vec<&str> = text.split('"').collect();
    for window in pieces.windows(4).step_by(2) {
        let [_, name, colon, value] = window else { continue };
        if colon.trim() == ":" && !is_absent_value(value.as_bytes()) {
            members.entry((*name).to_owned()).or_default().push((*value).to_owned());
        }
    }
    members
}
