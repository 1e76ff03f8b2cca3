//! Table layout inferred from a file: delimiter, header and column contents.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;

use super::cell_formats::{NumberNotation, date_formats, is_number, is_ticker};
use crate::normalize::is_absent_value;
use crate::source::csv_reader::CsvReader;

/// Number of bytes examined.
pub(super) const SAMPLE_BYTES: u64 = 256 * 1024;
/// Number of records examined.
const RECORDS: usize = 300;
/// Words for absent values that have this meaning in every feed.
const ABSENT: [&str; 4] = ["-", "--", "NaN", "nan"];
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Content of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnContent {
    /// Dates, with the formats that fit all cells.
    Dates(Vec<String>),
    Numbers,
    Tickers,
    Text,
    Empty,
}

struct NumberedLine {
    number: u64,
    cells: Vec<String>,
}

/// Records split at one delimiter, with a score.
struct DelimitedRecords {
    fit: usize,
    delimiter: u8,
    records: Vec<NumberedLine>,
}

/// Inferred layout of a table.
#[derive(Debug)]
pub(super) struct TableProfile {
    pub(super) windows_1252: bool,
    pub(super) delimiter: u8,
    /// Line of the header, or of the first record if there is no header.
    pub(super) first_line: u64,
    /// Number of header lines.
    pub(super) header: usize,
    /// Column names. Those of several header lines are joined by a bar; without a header, they are numbers.
    pub(super) names: Vec<String>,
    pub(super) contents: Vec<ColumnContent>,
    pub(super) signs: NumberNotation,
    /// Words for absent values that the map must list.
    pub(super) absent: Vec<&'static str>,
    /// First cell of every column.
    pub(super) samples: Vec<String>,
}

impl TableProfile {
    /// Infers the layout from the beginning of a file.
    pub(super) fn infer(bytes: &[u8]) -> Result<Self, String> {
        let windows_1252 = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some());
        let text: Cow<'_, str> = match windows_1252 {
            true => WINDOWS_1252.decode_without_bom_handling(bytes).0,
            false => String::from_utf8_lossy(bytes),
        };
        if let Some(tag) = ["<!doctype", "<html", "<?xml"].iter().find(|tag| starts_with(&text, tag)) {
            return Err(format!(
                "begins with {tag}: it is a page or a document, not a table; fetch it again"
            ));
        }
        let beginning = text.trim_start_matches('\u{feff}').trim_start();
        if beginning.starts_with(['{', '[']) || text.contains('\0') {
            let message = "is not a table; a map for JSON is written by hand: its columns are the members' names (quote.close), [file] records = \"data.rows\" the member that holds the records; see `ingest map nasdaq` for the other keys";
            return Err(message.to_owned());
        }
        let DelimitedRecords { delimiter, records, .. } = split_at_best_delimiter(&text)?;
        let width = usual_width(&records);
        // Lines of few cells above the table are a title, below it a total.
        let is_whole = |line: &&NumberedLine| line.cells.len() >= width && is_filled(&line.cells);
        let table: Vec<&NumberedLine> = records.iter().skip_while(|line| !is_whole(line)).collect();
        let header = table.iter().take(4).take_while(|line| is_header(&line.cells)).count();
        let first_line = table.first().map_or(1, |line| line.number);
        let names = (0..width).map(|column| name_of(&table[..header], column)).collect();
        let rows: Vec<&NumberedLine> = table[header..].iter().copied().filter(is_whole).collect();
        let cells = |column: usize| -> Vec<&str> {
            let cells = rows.iter().filter_map(|line| Some(line.cells.get(column)?.trim()));
            cells.filter(|cell| !is_absent_value(cell.as_bytes()) && !ABSENT.contains(cell)).collect()
        };
        let contents: Vec<ColumnContent> = (0..width).map(|column| content(&cells(column))).collect();
        let stands = |word: &&str| rows.iter().any(|line| line.cells.iter().any(|cell| cell.trim() == *word));
        let absent = ABSENT.into_iter().filter(stands).collect();
        let numbers = (0..width).filter(|column| contents[*column] == ColumnContent::Numbers);
        let numbers: Vec<&str> = numbers.flat_map(cells).collect();
        let signs = NumberNotation::of(numbers.iter().copied());
        let samples =
            (0..width).map(|column| cells(column).first().copied().unwrap_or_default().to_owned()).collect();
        Ok(Self { windows_1252, delimiter, first_line, header, names, contents, signs, absent, samples })
    }

    /// Complete lines of a file's beginning.
    pub(super) fn whole_lines(&self, bytes: &[u8]) -> Vec<u8> {
        let end = if (bytes.len() as u64) < SAMPLE_BYTES {
            bytes.len()
        } else {
            memchr::memrchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1)
        };
        bytes[..end].to_vec()
    }
}

/// True if a text begins with a tag, ignoring case.
fn starts_with(text: &str, tag: &str) -> bool {
    let beginning = text.trim_start_matches('\u{feff}').trim_start();
    beginning.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

/// Records, split at the delimiter that gives most of them the same number of columns.
fn split_at_best_delimiter(text: &str) -> Result<DelimitedRecords, String> {
    let mut best: Option<DelimitedRecords> = None;
    for delimiter in DELIMITERS {
        let records = read(text, delimiter).map_err(|error| format!("cannot be read: {error}"))?;
        let width = usual_width(&records);
        let alike = records.iter().filter(|line| line.cells.len() == width).count();
        let fit = if width < 2 { 0 } else { alike * 100 / records.len().max(1) * 100 + width.min(99) };
        if best.as_ref().is_none_or(|known| fit > known.fit) {
            best = Some(DelimitedRecords { fit, delimiter, records });
        }
    }
    best.filter(|cut| cut.fit > 0)
        .ok_or_else(|| "has no columns separated by a comma, a semicolon, a tab or a bar".to_owned())
}

fn read(text: &str, delimiter: u8) -> std::io::Result<Vec<NumberedLine>> {
    let mut reader = CsvReader::with_delimiter(text.as_bytes(), Some(delimiter))?;
    let mut records = Vec::new();
    while records.len() < RECORDS {
        let Some(record) = reader.next_record()? else { break };
        let cells = record.fields().map(|field| String::from_utf8_lossy(field).into_owned());
        records.push(NumberedLine { number: record.line, cells: cells.collect() });
    }
    Ok(records)
}

/// Most frequent number of columns.
fn usual_width(records: &[NumberedLine]) -> usize {
    let count = |width: usize| records.iter().filter(|line| line.cells.len() == width).count();
    records.iter().map(|line| line.cells.len()).max_by_key(|width| count(*width)).unwrap_or_default()
}

/// True if more than half of a record's cells have a value.
fn is_filled(cells: &[String]) -> bool {
    cells.iter().filter(|cell| !cell.trim().is_empty()).count() * 2 > cells.len()
}

/// True if a record is a header: at least one word, and neither a number nor a date.
fn is_header(cells: &[String]) -> bool {
    let filled = || cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
    filled().next().is_some()
        && filled().all(|cell| !is_number(cell) && date_formats(&[cell]).is_empty())
        && (is_filled(cells) || filled().count() == 1)
}

fn name_of(header: &[&NumberedLine], column: usize) -> String {
    let parts = header.iter().filter_map(|line| Some(line.cells.get(column)?.trim()));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { (column + 1).to_string() } else { parts.join("|") }
}

fn content(cells: &[&str]) -> ColumnContent {
    if cells.is_empty() {
        return ColumnContent::Empty;
    }
    let dates = date_formats(cells);
    if !dates.is_empty() {
        return ColumnContent::Dates(dates);
    }
    if cells.iter().all(|cell| is_number(cell)) {
        return ColumnContent::Numbers;
    }
    if cells.iter().all(|cell| is_ticker(cell)) { ColumnContent::Tickers } else { ColumnContent::Text }
}
