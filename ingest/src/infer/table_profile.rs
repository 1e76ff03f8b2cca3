//! Table layout inferred from the beginning of a file: delimiter, header and column contents.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::NaiveDateTime;
use encoding_rs::WINDOWS_1252;

use super::cell_formats::{NumberNotation, absent_words, are_numbers, date_formats, is_number, is_ticker};
use crate::format::{is_word_of, normalize_column_name, words_of};
use crate::normalize::{UtcTimeInterpretation, interpret_utc_times, is_absent_value, parse_utc_time};
use crate::source::csv_reader::CsvReader;

/// Number of bytes that are read from the beginning of a file.
pub(super) const SAMPLE_BYTES: u64 = 256 * 1024;
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Type of the cells in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnContent {
    /// Dates, with the formats that fit the largest number of cells.
    Dates(Vec<String>),
    /// UTC times, and how to read them as dates.
    UtcTimes(UtcTimeInterpretation),
    Numbers,
    Tickers,
    Text,
    Empty,
}

impl ColumnContent {
    pub(super) fn is_dated(&self) -> bool {
        matches!(self, Self::Dates(_) | Self::UtcTimes(_))
    }
}

/// Column of the examined table: name, content and cells.
#[derive(Debug)]
pub(super) struct ColumnProfile {
    /// Name of the column. Without a header, it is the column number. With several header lines, the names from all
    /// these lines are joined by `|`, for example `Close|AAPL`.
    pub(super) name: String,
    pub(super) content: ColumnContent,
    /// Cells that have a value.
    pub(super) cells: Vec<String>,
    /// Cells of all rows; empty for a row without a value.
    pub(super) rows: Vec<String>,
}

impl ColumnProfile {
    /// Creates a column from its cells, one for each row. A common word for an absent value, such as `N/A`, is no value.
    pub(super) fn new(name: String, mut rows: Vec<String>) -> Self {
        rows.iter_mut().filter(|cell| is_absent_value(cell.as_bytes())).for_each(String::clear);
        let cells: Vec<String> = rows.iter().filter(|cell| !cell.is_empty()).cloned().collect();
        let content = content(&name, &cells.iter().map(String::as_str).collect::<Vec<_>>());
        Self { name, content, cells, rows }
    }

    /// Name of the column without the path of its parent members: `close` for `price.close` in JSON.
    pub(super) fn own_name(&self, layout: &TableLayout) -> &str {
        match layout {
            TableLayout::Json(_) => self.name.rsplit('.').next().unwrap_or(&self.name),
            TableLayout::Text { .. } => &self.name,
        }
    }

    /// Text of the first cell with a value.
    pub(super) fn sample(&self) -> &str {
        self.cells.first().map_or("", String::as_str)
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        self.cells.iter().map(String::as_str).collect()
    }
}

struct NumberedLine {
    number: u64,
    cells: Vec<String>,
}

/// Position of a table in its file. Text: encoding, delimiter, first line and header. JSON: path of the records.
#[derive(Debug)]
pub(super) enum TableLayout {
    Text {
        windows_1252: bool,
        delimiter: u8,
        /// Line number of the header. Without a header, line number of the first record.
        first_line: u64,
        /// Number of header lines.
        header: usize,
    },
    /// Path of the JSON member with the records. `None` if readers find the records by default: at the top level, in
    /// `results` or in `data`.
    Json(Option<String>),
}

/// Inferred content and layout of a table.
#[derive(Debug)]
pub(super) struct TableProfile {
    pub(super) layout: TableLayout,
    pub(super) columns: Vec<ColumnProfile>,
    pub(super) notation: NumberNotation,
    /// True if the table has a line with totals.
    pub(super) has_totals: bool,
    /// Date formats of column names that are dates; `None` if the columns are not named by dates.
    pub(super) dates_across: Option<Vec<String>>,
}

/// Decodes the beginning of a file as UTF-8 or Windows-1252. The flag is true for Windows-1252.
pub(super) fn decode(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    let windows_1252 = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some());
    match windows_1252 {
        true => (WINDOWS_1252.decode_without_bom_handling(bytes).0, true),
        false => (String::from_utf8_lossy(bytes), false),
    }
}

impl TableProfile {
    /// Infers the layout from the beginning of a file.
    pub(super) fn infer(text: &str, windows_1252: bool) -> Result<Self, String> {
        let beginning = text.trim_start_matches('\u{feff}').trim_start();
        let begins_with =
            |tag: &&&str| beginning.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
        if let Some(tag) = ["<!doctype", "<html", "<?xml"].iter().find(begins_with) {
            return Err(format!(
                "begins with {tag}: it is a page or a document, not a table; fetch it again"
            ));
        }
        if text.contains('\0') {
            return Err("is binary, not a table".to_owned());
        }
        let (delimiter, records) = split_at_best_delimiter(text)?;
        let width = usual_width(&records);
        // Lines above the table that have few cells are a title. They are skipped.
        let is_whole = |line: &&NumberedLine| line.cells.len() >= width && is_filled(&line.cells);
        let table: Vec<&NumberedLine> = records.iter().skip_while(|line| !is_whole(line)).collect();
        let mut header = table.iter().take(4).take_while(|line| is_header(&line.cells)).count();
        let dates_across = if header == 0 { dates_in_header(&table) } else { None };
        header = header.max(usize::from(dates_across.is_some()));
        // In a table without numbers and dates, every row looks like a header line. Only the first line is then the
        // header.
        let has_values = |line: &&&NumberedLine| {
            line.cells.iter().any(|cell| is_number(cell.trim()) || is_dated(cell.trim()))
        };
        if header > 1 && table[header..].iter().filter(has_values).count() * 2 <= table.len() - header {
            header = 1;
        }
        let first_line = table.first().map_or(1, |line| line.number);
        let rows = &table[header..];
        let column = |index: usize| {
            let cells =
                rows.iter().map(|line| line.cells.get(index).map_or("", |cell| cell.trim()).to_owned());
            ColumnProfile::new(name_of(&table[..header], index), cells.collect())
        };
        let columns: Vec<ColumnProfile> = (0..width).map(column).collect();
        let has_totals = header > 0 && rows.iter().any(|line| is_total(&line.cells));
        let layout = TableLayout::Text { windows_1252, delimiter, first_line, header };
        Ok(Self::of_columns(layout, columns, has_totals, dates_across))
    }

    /// Creates the profile of a table from its columns. The notation of the numbers is inferred from the cells.
    pub(super) fn of_columns(
        layout: TableLayout,
        columns: Vec<ColumnProfile>,
        has_totals: bool,
        dates_across: Option<Vec<String>>,
    ) -> Self {
        let delimiter = if let TableLayout::Text { delimiter, .. } = layout { delimiter } else { b',' };
        let numbers = columns.iter().filter(|column| column.content == ColumnContent::Numbers);
        let numbers =
            numbers.flat_map(|column| &column.cells).map(String::as_str).filter(|cell| is_number(cell));
        let notation = NumberNotation::infer(numbers, delimiter);
        Self { layout, columns, notation, has_totals, dates_across }
    }

    /// Positions of the columns that `is_wanted` selects.
    pub(super) fn positions(&self, is_wanted: impl Fn(&ColumnProfile) -> bool) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(_, column)| is_wanted(column)).map(|(index, _)| index).collect()
    }

    /// Number of header lines. It is 1 for JSON, because the members of a record have names.
    pub(super) fn header(&self) -> usize {
        match self.layout {
            TableLayout::Text { header, .. } => header,
            TableLayout::Json(_) => 1,
        }
    }

    /// Words for absent values in the given columns.
    pub(super) fn absent_words(&self, columns: &[usize]) -> BTreeSet<String> {
        let typed = |index: &&usize| {
            let content = &self.columns[**index].content;
            content.is_dated() || *content == ColumnContent::Numbers
        };
        columns.iter().filter(typed).flat_map(|index| absent_words(&self.columns[*index].texts())).collect()
    }
}

/// Tries each delimiter, and returns the best one with its records. With the best delimiter, the largest share of the
/// records has the same number of columns.
fn split_at_best_delimiter(text: &str) -> Result<(u8, Vec<NumberedLine>), String> {
    let (mut best, mut best_fit) = (None, 0);
    for delimiter in DELIMITERS {
        let records = read_records(text, delimiter).map_err(|error| format!("cannot be read: {error}"))?;
        let width = usual_width(&records);
        let alike = records.iter().filter(|line| line.cells.len() == width).count();
        let fit = if width < 2 { 0 } else { alike * 100 / records.len().max(1) * 100 + width.min(99) };
        if fit > best_fit {
            (best, best_fit) = (Some((delimiter, records)), fit);
        }
    }
    best.ok_or_else(|| "has no columns separated by commas, semicolons, tabs or vertical bars".to_owned())
}

fn read_records(text: &str, delimiter: u8) -> std::io::Result<Vec<NumberedLine>> {
    let mut reader = CsvReader::with_delimiter(text.as_bytes(), Some(delimiter))?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        let cells = record.fields().map(|field| String::from_utf8_lossy(field).into_owned());
        records.push(NumberedLine { number: record.line, cells: cells.collect() });
    }
    Ok(records)
}

/// Most frequent number of columns.
fn usual_width(records: &[NumberedLine]) -> usize {
    let count = |width: usize| records.iter().filter(|line| line.cells.len() == width).count();
    let widths: BTreeSet<usize> = records.iter().map(|line| line.cells.len()).collect();
    widths.into_iter().max_by_key(|width| count(*width)).unwrap_or_default()
}

/// True if more than half of a record's cells have a value.
fn is_filled(cells: &[String]) -> bool {
    cells.iter().filter(|cell| !cell.trim().is_empty()).count() * 2 > cells.len()
}

/// True if a record may be a header: it contains neither numbers nor dates. Also, exactly one cell or more than half of
/// the cells must have a value.
fn is_header(cells: &[String]) -> bool {
    let filled = || cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
    filled().next().is_some()
        && filled().all(|cell| !is_number(cell) && !is_dated(cell))
        && (is_filled(cells) || filled().count() == 1)
}

fn is_dated(cell: &str) -> bool {
    parse_utc_time(cell).is_some() || !date_formats(&[cell]).is_empty()
}

/// Date formats of a header whose column names are dates; `None` for any other header.
fn dates_in_header(table: &[&NumberedLine]) -> Option<Vec<String>> {
    let [header, first, ..] = table else { return None };
    let dates: Vec<&str> = header
        .cells
        .iter()
        .map(|cell| cell.trim())
        .filter(|cell| is_dated(cell) && cell.contains(|c: char| !c.is_ascii_digit()))
        .collect();
    let words = [header, first].map(|line| line.cells.first().is_some_and(|cell| !is_dated(cell.trim())));
    let across = dates.len() >= 2 && dates.len() * 2 >= header.cells.len() && words == [true, true];
    across.then(|| date_formats(&dates)).filter(|formats| !formats.is_empty())
}

/// True if the first word of a line is a word for a total.
fn is_total(cells: &[String]) -> bool {
    let first = cells.iter().map(|cell| cell.trim().to_lowercase()).find(|cell| !cell.is_empty());
    let word = first.and_then(|cell| cell.split([' ', ':']).next().map(str::to_owned));
    word.is_some_and(|word| is_word_of("total", &word))
}

/// True if the name of a column may mean that its cells are symbols: `Company`, `ts_code`.
pub(super) fn names_symbols(name: &str) -> bool {
    let whole = normalize_column_name(name);
    let topics = ["symbol column", "ambiguous symbol column"];
    topics.iter().any(|topic| is_word_of(topic, &whole))
        || words_of(name).last().is_some_and(|word| ["symbol", "ticker", "code"].contains(&word.as_str()))
}

fn name_of(header: &[&NumberedLine], column: usize) -> String {
    let parts = header.iter().filter_map(|line| Some(line.cells.get(column)?.trim()));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { (column + 1).to_string() } else { parts.join("|") }
}

fn content(name: &str, cells: &[&str]) -> ColumnContent {
    if cells.is_empty() {
        return ColumnContent::Empty;
    }
    // A symbol may begin with digits, or consist of them if other symbols of the column do not.
    let is_code = |cell: &&str| is_ticker(&format!("A{cell}")) && cell.len() <= 12;
    let has_letter = |cell: &&str| cell.contains(|c: char| c.is_ascii_uppercase());
    if names_symbols(name) && cells.iter().all(is_code) && cells.iter().any(has_letter) {
        return ColumnContent::Tickers;
    }
    let times: Vec<NaiveDateTime> = cells.iter().filter_map(|cell| parse_utc_time(cell)).collect();
    if times.len() * 2 > cells.len() {
        match interpret_utc_times(&times) {
            UtcTimeInterpretation::AsWritten => {}
            interpretation => return ColumnContent::UtcTimes(interpretation),
        }
    }
    let dates = date_formats(cells);
    if !dates.is_empty() {
        return ColumnContent::Dates(dates);
    }
    if are_numbers(cells) {
        return ColumnContent::Numbers;
    }
    if cells.iter().all(|cell| is_ticker(cell)) { ColumnContent::Tickers } else { ColumnContent::Text }
}
