//! Conflicting prices of a file: two rows of one symbol and day, whose closes differ by more than 0.5 % (R29). The first row
//! is the bar of the day. The later ones are evidence, and the summary of the load names them.
//!
//! Often, one column distinguishes the rows, such as the board of an exchange. Its cells are words, and they differ in all
//! named conflicts. A map can then select rows by this column.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io::Read;

use chrono::NaiveDate;
use market::day::date_of;
use market::symbol::Symbol;
use rust_decimal::Decimal;
use serde::Serialize;
use telemetry::report::Report;
use telemetry::{Sample, counted};

use crate::price::price_batch::{PriceBatch, ScaledPriceRow, SymbolId};
use crate::source::csv_reader::CsvReader;

/// Largest difference of two closes without a conflict, as a share of the first one.
const TOLERANCE: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// True if two closes of one day are a conflict.
pub(crate) fn are_in_conflict(first: Decimal, later: Decimal) -> bool {
    (later - first).abs() > first.abs().saturating_mul(TOLERANCE)
}

/// Two rows of one symbol and day with different closes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictingPrice {
    pub symbol: Symbol,
    pub date: NaiveDate,
    /// Close that is used.
    pub used: Decimal,
    pub used_line: u64,
    pub other: Decimal,
    pub other_line: u64,
}

/// Conflicting prices of a file or load.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ConflictingPrices {
    /// Rows that are not used.
    #[serde(flatten)]
    pub sample: Sample<ConflictingPrice>,
    /// Column that distinguishes the rows, and its cell in the first row that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<(String, String)>,
}

impl ConflictingPrices {
    /// Adds the conflicts of another file.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sample.merge(&other.sample);
        self.column = self.column.take().or_else(|| other.column.clone());
    }

    /// `None` without a conflict.
    pub(crate) fn non_empty(self) -> Option<Self> {
        (self.sample.count > 0).then_some(self)
    }

    /// Finds the column that distinguishes the rows, in the text of the file. Only tables have such a column.
    pub(crate) fn find_column(&mut self, text: &mut dyn Read) {
        self.column = distinguishing_column(&self.sample.first, text);
    }

    pub(crate) fn add_to(&self, report: &mut Report) {
        let rows = counted(self.sample.count, "row");
        report.add_fact(format!(
            "other closes of a day than its first row: {rows}, not used (flag conflicting_duplicate)"
        ));
        for ConflictingPrice { symbol, date, used, used_line, other, other_line } in &self.sample.first {
            report.add_fact(format!(
                "  {symbol} {date}: {used} in line {used_line}, {other} in line {other_line}"
            ));
        }
        if let Some((column, cell)) = &self.column {
            report.add_fact(format!("  the column {column} distinguishes the rows: a map selects rows with [rows] only = {{ {column:?} = {cell:?} }}"));
        }
    }
}

fn distinguishing_column(conflicts: &[ConflictingPrice], text: &mut dyn Read) -> Option<(String, String)> {
    let mut records = CsvReader::new(text).ok()?;
    let header = fields(&records.next_record().ok()??);
    let last = conflicts.iter().map(|conflict| conflict.used_line.max(conflict.other_line)).max()?;
    let is_wanted = |line: u64| {
        conflicts.iter().any(|conflict| line == conflict.used_line || line == conflict.other_line)
    };
    let mut rows: Vec<(u64, Vec<String>)> = Vec::new();
    while let Ok(Some(record)) = records.next_record() {
        if is_wanted(record.line) {
            rows.push((record.line, fields(&record)));
        }
        if record.line >= last {
            break;
        }
    }
    let cells = |line: u64| rows.iter().find(|(of, _)| *of == line).map(|(_, cells)| cells.as_slice());
    let pair = |conflict: &ConflictingPrice| Some([cells(conflict.used_line)?, cells(conflict.other_line)?]);
    let pairs = conflicts.iter().map(pair).collect::<Option<Vec<[&[String]; 2]>>>()?;
    let column = column_of_words(header.len(), &pairs)?;
    Some((header[column].clone(), pairs[0][0].get(column)?.clone()))
}

/// Index of the first of `columns` columns whose cells are words that differ in every pair of records.
pub(crate) fn column_of_words(columns: usize, pairs: &[[&[String]; 2]]) -> Option<usize> {
    let is_word =
        |text: &str| text.chars().any(char::is_alphabetic) && !text.chars().any(|c| c.is_ascii_digit());
    let distinguishes = |column: &usize| {
        pairs.iter().all(|[used, other]| {
            let cells = used.get(*column).zip(other.get(*column));
            cells.is_some_and(|(used, other)| used != other && is_word(used) && is_word(other))
        })
    };
    (0..columns).find(|column| !pairs.is_empty() && distinguishes(column))
}

fn fields(record: &crate::source::csv_reader::CsvRecord<'_>) -> Vec<String> {
    record.fields().map(|field| String::from_utf8_lossy(field).trim().to_owned()).collect()
}

impl PriceBatch {
    /// Removes the rows whose close is in conflict with the first row of their symbol, day and version (R29).
    pub(crate) fn remove_conflicts(&mut self, symbol_names: &[Symbol]) -> Vec<ConflictingPrice> {
        let repeated = self.symbols_with_repeated_days(symbol_names.len());
        if repeated.is_empty() {
            return Vec::new();
        }
        let mut first: HashMap<(SymbolId, i32, u16), usize> = HashMap::new();
        let (mut conflicts, mut removed) = (Vec::new(), HashSet::new());
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| repeated.contains(&row.symbol)) {
            let used = *first.entry((row.symbol, row.day, row.version)).or_insert(index);
            let [used, other] = [&self.rows[used], row].map(|row| (row.close(), row.line));
            if !self.versions[usize::from(row.version)].retracted && are_in_conflict(used.0, other.0) {
                removed.insert(index);
                conflicts.push(ConflictingPrice {
                    symbol: symbol_names[row.symbol as usize].clone(),
                    date: date_of(row.day),
                    used: used.0,
                    used_line: used.1,
                    other: other.0,
                    other_line: other.1,
                });
            }
        }
        retain_others(&mut self.rows, &removed);
        retain_others(&mut self.extras, &removed);
        conflicts
    }

    /// Symbols that may have two rows of one day: their days are neither ascending nor descending. Most files have none.
    fn symbols_with_repeated_days(&self, symbols: usize) -> HashSet<SymbolId> {
        let mut last: Vec<Option<(i32, Ordering)>> = vec![None; symbols];
        let mut repeated = HashSet::new();
        for row in &self.rows {
            let known = &mut last[row.symbol as usize];
            let order = known.map(|(day, _)| row.day.cmp(&day));
            let is_continued = match (*known, order) {
                (Some((_, before)), Some(order)) => {
                    order != Ordering::Equal && (before == Ordering::Equal || before == order)
                }
                _ => true,
            };
            if !is_continued {
                repeated.insert(row.symbol);
            }
            *known = Some((row.day, order.unwrap_or(Ordering::Equal)));
        }
        repeated
    }
}

impl ScaledPriceRow {
    fn close(&self) -> Decimal {
        Decimal::new(self.close, u32::from(self.scale))
    }
}

/// Removes the entries with the indexes in `removed`.
fn retain_others<T>(entries: &mut Vec<T>, removed: &HashSet<usize>) {
    let mut index = 0;
    entries.retain(|_| {
        index += 1;
        !removed.contains(&(index - 1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(lines: [u64; 2]) -> ConflictingPrice {
        ConflictingPrice {
            symbol: Symbol::parse("ABX").unwrap(),
            date: "2019-01-01".parse().unwrap(),
            used: Decimal::new(106, 1),
            used_line: lines[0],
            other: Decimal::new(102, 1),
            other_line: lines[1],
        }
    }

    #[test]
    fn closes_that_differ_by_more_than_half_a_percent_are_in_conflict() {
        let check = |later: i64| are_in_conflict(Decimal::from(200), Decimal::new(later, 2));
        assert_eq!([20_100, 20_101].map(check), [false, true]);
        assert_eq!([19_900, 19_899].map(check), [false, true]);
    }

    #[test]
    fn a_column_distinguishes_the_rows_if_its_words_differ_in_all_conflicts() {
        let column = |lines: &[[u64; 2]], text: &str| {
            let conflicts: Vec<ConflictingPrice> = lines.iter().map(|lines| conflict(*lines)).collect();
            distinguishing_column(&conflicts, &mut text.as_bytes())
        };
        let boards = "SYMBOL,SERIES,CLOSE,TIMESTAMP\nABX,EQ,10.6,01-JAN-2019\nABX,BE,10.2,01-JAN-2019\n\
            CDX,EQ,5,01-JAN-2019\nCDX,BE,6,01-JAN-2019\nEFX,EQ,5,01-JAN-2019\nEFX,EQ,6,01-JAN-2019\n";
        let series = Some(("SERIES".to_owned(), "EQ".to_owned()));
        assert_eq!(column(&[[2, 3]], boards), series);
        assert_eq!(column(&[[2, 3], [4, 5]], boards), series);
        assert_eq!(column(&[[2, 3], [6, 7]], boards), None);
        assert_eq!(column(&[[2, 3]], "[1, 2]"), None);
    }
}
