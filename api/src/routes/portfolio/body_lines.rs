//! Lines of a request body with transactions and received dividends: the texts of each line by column, from JSON or
//! CSV.

use std::collections::BTreeMap;

use csv::StringRecord;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::parameters::ParameterError;

/// Maximum length of a column's name in an error, in characters.
const MAX_NAME_LENGTH: usize = 64;
/// Name of the list of transactions, in the body and in errors.
pub(super) const TRANSACTIONS: &str = "transactions";
const RECEIVED: &str = "received";
pub(super) const TRANSACTION_COLUMNS: &[&str] =
    &["account", "symbol", "date", "quantity", "price", "currency"];
const RECEIVED_COLUMNS: &[&str] = &["account", "symbol", "date", "amount", "currency"];
/// Columns of a CSV, whose lines are transactions or received dividends.
pub(super) const CSV_COLUMNS: &[&str] =
    &["account", "symbol", "date", "quantity", "price", "currency", "amount"];

/// Texts of one transaction or received dividend, by column.
pub(super) struct Line {
    /// Place in the body, for errors: `transactions[3]`, or `line 5` of a CSV.
    pub(super) place: String,
    pub(super) is_received: bool,
    cells: BTreeMap<&'static str, Cell>,
    pub(super) errors: Vec<ParameterError>,
}

struct Cell {
    /// Name of the column in the body.
    name: String,
    text: String,
}

fn unreadable(error: impl std::fmt::Display) -> ParameterError {
    ParameterError::new(TRANSACTIONS, format!("cannot be read: {error}"), None)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonBody {
    transactions: Vec<JsonLine>,
    received: Option<Vec<JsonLine>>,
}

type JsonLine = BTreeMap<String, Option<Box<RawValue>>>;

pub(super) fn json_lines(text: &str) -> Result<Vec<Line>, ParameterError> {
    let body: JsonBody = serde_json::from_str(text).map_err(unreadable)?;
    let lists = [
        (TRANSACTIONS, TRANSACTION_COLUMNS, body.transactions),
        (RECEIVED, RECEIVED_COLUMNS, body.received.unwrap_or_default()),
    ];
    let mut lines = Vec::new();
    for (list, columns, members) in lists {
        for (number, members) in members.into_iter().enumerate() {
            let mut line = Line::new(format!("{list}[{number}]"), list == RECEIVED);
            for (column, value) in members {
                let Some(value) = value else { continue };
                match cell_text(&value) {
                    Some(text) => line.add_cell(columns, &column, &text),
                    None => line.add_error(&column, "is neither a text nor a number"),
                }
            }
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Text of a JSON string or number; `None` for any other value. The digits of a number stay as they are.
fn cell_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
        _ => None,
    }
}

/// Record of a CSV, with the number of its first line.
pub(super) type NumberedRecord = (u64, StringRecord);

/// Records of a CSV, whose lines end with `\n`.
pub(super) fn read_records(text: &str, delimiter: u8) -> Result<Vec<NumberedRecord>, ParameterError> {
    let mut builder = csv::ReaderBuilder::new();
    builder.flexible(true).has_headers(false).trim(csv::Trim::All).delimiter(delimiter);
    let numbered = |record: Result<StringRecord, csv::Error>| {
        let record = record.map_err(unreadable)?;
        Ok((record.position().map_or(0, |start| line_number(text, start)), record))
    };
    builder.from_reader(text.as_bytes()).into_records().map(numbered).collect()
}

/// Number of the line with a record. The reader's position is that of the line breaks before the record.
fn line_number(text: &str, start: &csv::Position) -> u64 {
    let start_byte = usize::try_from(start.byte()).unwrap_or(text.len());
    let breaks = text.bytes().skip(start_byte).take_while(|byte| *byte == b'\n');
    start.line() + breaks.map(|_| 1).sum::<u64>()
}

/// True if the first record has no other columns than [`CSV_COLUMNS`].
pub(super) fn is_own_header(records: &[NumberedRecord]) -> bool {
    let header = records.first().map(|(_, header)| header);
    header.is_some_and(|header| header.iter().all(|column| CSV_COLUMNS.contains(&column)))
}

/// Lines of a CSV with [`CSV_COLUMNS`]. `None` if the first record lacks a needed column.
pub(super) fn csv_lines(records: &[NumberedRecord]) -> Option<Vec<Line>> {
    let ((_, header), records) = records.split_first()?;
    let has = |name: &str| header.iter().any(|column| column == name);
    if !has("symbol") || !has("date") || !(has("quantity") || has("amount")) {
        return None;
    }
    let mut lines = Vec::new();
    for (number, record) in records {
        let mut line = Line::new(format!("line {number}"), false);
        for (column, cell) in header.iter().zip(record) {
            line.add_cell(CSV_COLUMNS, column, cell);
        }
        if record.len() > header.len() {
            let error = format!("has {} cells, but the header has {}", record.len(), header.len());
            line.errors.push(ParameterError::new(line.place.as_str(), error, None));
        }
        line.is_received = line.has("amount") && !line.has("quantity");
        if line.has("amount") && line.has("quantity") {
            line.add_error("amount", "is the amount of a received dividend, which has no quantity");
        }
        lines.push(line);
    }
    Some(lines)
}

impl Line {
    pub(super) fn new(place: String, is_received: bool) -> Self {
        Self { place, is_received, cells: BTreeMap::new(), errors: Vec::new() }
    }

    pub(super) fn add_error(&mut self, column: &str, error: impl Into<String>) {
        let name = self.cells.get(column).map_or(column, |cell| cell.name.as_str());
        let name: String = name.chars().take(MAX_NAME_LENGTH).collect();
        self.errors.push(ParameterError::new(format!("{}.{name}", self.place), error, None));
    }

    /// Adds the text of a column, which must be one of `columns`.
    fn add_cell(&mut self, columns: &[&'static str], name: &str, text: &str) {
        match columns.iter().find(|column| **column == name) {
            Some(column) => self.set(column, name, text.trim().to_owned()),
            None => {
                self.add_error(name, format!("is not a column; the columns are {}", columns.join(", ")));
            }
        }
    }

    /// Sets the text of a column, which the body calls `name`. An empty text is an absent value.
    pub(super) fn set(&mut self, column: &'static str, name: &str, text: String) {
        self.cells.insert(column, Cell { name: name.to_owned(), text });
    }

    fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column).map(|cell| cell.text.as_str()).filter(|text| !text.is_empty())
    }

    fn has(&self, column: &str) -> bool {
        self.text(column).is_some()
    }

    /// Value of a column, parsed by `parse`; `None` if it is absent or invalid.
    pub(super) fn read<T>(&mut self, column: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let parsed = parse(self.text(column)?);
        parsed.map_err(|error| self.add_error(column, error)).ok()
    }

    /// Value of a required column.
    pub(super) fn require<T>(
        &mut self,
        column: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let name = self.cells.get(column).map_or(column, |cell| cell.name.as_str());
        let has_error = self.errors.iter().any(|error| error.param.ends_with(&format!(".{name}")));
        if !has_error && !self.has(column) {
            self.add_error(column, "is required");
        }
        self.read(column, parse)
    }
}
