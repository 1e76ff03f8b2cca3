//! Comparison of two versions of the read tables: differing rows, their number by table and column, and a ranking of
//! the largest changes.
//!
//! The rows come from two generations, from two derivations of one security, or from two sources.
//!
//! The report has charts, tables, the largest changes by topic, and the differing rows.

mod bars;
mod differences;
mod files;
mod ranking;
mod row_difference;
mod rows;

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use telemetry::report::{Report, ReportTable, detail_line, subject_line};
use telemetry::shorten;
use telemetry::table::{Column, Table};

use ranking::TopicSummary;
use row_difference::ChangeKind;

pub(crate) use bars::{BAR_FIELDS, each_pair};
pub(crate) use differences::{DiffAccumulator, Differences, TableDiff};
pub(crate) use files::{DifferenceFile, HTML_ROWS, PageFile};
pub(crate) use ranking::DiffTopic;
pub(crate) use row_difference::{CellValue, RowDifference};
pub(crate) use rows::{
    ComparedTable, DerivedCells, HOLDINGS, PRICES, RowComparison, SECTORS, SYMBOLS, TABLES,
};

const MAX_VALUE_CHARACTERS: usize = 60;
/// Maximum number of printed elements of a list value. Only elements that differ between the versions are printed.
const MAX_LIST_ELEMENTS: usize = 5;
const HIDDEN_HINT: &str = "; --limit N shows more, --csv FILE has all";

impl Differences {
    pub(crate) fn add_charts(&self, report: &mut Report) {
        let differing = self.differing_tables().map(|table| (table.table.clone(), table.differing));
        report.add_chart("Differing rows by table", differing.collect());
        let topics =
            self.ranked.iter().map(|ranked| (format!("{:?}", ranked.topic).to_lowercase(), ranked.count));
        report.add_chart("Securities by what changes", topics.collect());
        for ranked in &self.ranked {
            let label = |below: Option<_>| below.map_or("more".to_owned(), |below| format!("below {below}"));
            let sizes = ranked.sizes.iter().map(|bucket| (label(bucket.below), bucket.count));
            report.add_chart(format!("How much {}", ranked.topic.title()), sizes.collect());
        }
        let years = self.price_days.iter().map(|(year, days)| (year.to_string(), *days));
        report.add_chart("Days of prices by year", years.collect());
    }

    pub(crate) fn add_tables<'a>(report: &mut Report, tables: impl Iterator<Item = &'a TableDiff>) {
        let columns = [
            Column::Text("table"),
            Column::Number("rows before"),
            Column::Number("rows after"),
            Column::Number("differing"),
            Column::Text("in columns"),
        ];
        let mut list = Table::new(["table", "tables"], &columns, usize::MAX);
        for table in tables {
            let columns = table.columns.iter().map(|(name, count)| format!("{name}\u{a0}{count}"));
            let columns = columns.collect::<Vec<_>>().join(", ");
            let [before, after, differing] =
                [table.rows_a, table.rows_b, table.differing].map(|count| count.to_string());
            list.add_row([table.table.clone(), before, after, differing, columns]);
        }
        report.add_list("Tables", list);
    }

    pub(crate) fn differing_tables(&self) -> impl Iterator<Item = &TableDiff> {
        self.tables.iter().filter(|table| table.differing > 0)
    }

    pub(crate) fn add_topics(&self, report: &mut Report) {
        self.ranked.iter().for_each(|ranked| report.add_table(ranked.to_table()));
    }

    /// Adds the differing rows. Without `as_text`, they appear only on the page.
    pub(crate) fn add_rows(&self, report: &mut Report, as_text: bool) {
        for table in self.differing_tables().map(|table| table.to_table(as_text)) {
            if as_text { report.add_table(table) } else { report.add_filled_table(table) }
        }
    }
}

impl DiffTopic {
    fn title(self) -> &'static str {
        match self {
            Self::Securities => "securities come or go",
            Self::Statuses => "dividend statuses change",
            Self::Lists => "list memberships change",
            Self::Streaks => "streaks change, in years",
            Self::Yields => "yields change, in percent points",
            Self::Prices => "prices change, in percent",
        }
    }
}

impl TopicSummary {
    fn to_table(&self) -> ReportTable {
        let columns = &["symbol", "figure", "before", "after", "size", "why"];
        let mut table = ReportTable::new(self.topic.title(), columns).with_count(self.count);
        for found in &self.first {
            let [a, b] = shorten_values(&found.a, &found.b);
            let size =
                if self.topic == DiffTopic::Securities { String::new() } else { found.size.to_string() };
            let line = subject_line(&found.symbol, &format!("{}: {a} -> {b}", found.figure));
            let why = found.why.iter().map(|why| detail_line(why));
            let cells = [found.symbol.clone(), found.figure.clone(), a, b, size, found.why.join("\n")];
            table.add_row([line].into_iter().chain(why), cells);
        }
        table.add_hidden_count(self.count - self.first.len() as u64, HIDDEN_HINT);
        table
    }
}

impl TableDiff {
    fn to_table(&self, as_text: bool) -> ReportTable {
        let rows = if self.differing == 1 { "row" } else { "rows" };
        let columns = &["symbol", "key", "change", "column", "before", "after", "why"];
        let title = format!("differing {rows} of {}", self.table);
        let mut table = ReportTable::new(title, columns).with_count(self.differing);
        let is_explained = self.rows.iter().any(|row| !row.why.is_empty());
        for row in &self.rows {
            let (owner, key, change) = (row.owner(), row.rest_of_key(), row.change.to_string());
            let line = |text: &str| subject_line(&owner, [key.as_str(), text].join(" ").trim_start());
            let mut lines = if row.change == ChangeKind::Changed { Vec::new() } else { vec![line(&change)] };
            let mut why = match row.why.is_empty() && is_explained {
                true => "a larger --limit explains this row".to_owned(),
                false => row.why.join("\n"),
            };
            for changed in &row.columns {
                let [a, b] = shorten_values(&changed.a, &changed.b);
                if row.change == ChangeKind::Changed {
                    lines.push(line(&format!("{}: {a} -> {b}", changed.column)));
                }
                // Only the first column has the explanation of the row.
                let why = std::mem::take(&mut why);
                let cells = [owner.clone(), key.clone(), change.clone(), changed.column.clone(), a, b, why];
                table.add_row([], cells);
            }
            lines.extend(row.why.iter().map(|why| detail_line(why)));
            table.add_row(if as_text { lines } else { Vec::new() }, []);
        }
        table.add_hidden_count(self.differing - self.rows.len() as u64, HIDDEN_HINT);
        table
    }
}

/// Shortens both values of a differing column for the output. If both are JSON lists or objects, only their differing
/// elements remain. `--json` and `--csv` contain the complete values.
fn shorten_values(a: &CellValue, b: &CellValue) -> [String; 2] {
    match (list_elements(a), list_elements(b)) {
        (Some(of_a), Some(of_b)) => [shorten_list(&of_a, &of_b), shorten_list(&of_b, &of_a)],
        _ => [a, b].map(|cell| shorten(&cell.to_string(), MAX_VALUE_CHARACTERS)),
    }
}

/// Splits a JSON list or object into one text per element or field. Returns `None` for other values.
fn list_elements(cell: &CellValue) -> Option<Vec<String>> {
    let CellValue::Json(text) = cell else { return None };
    // A browser can break a line at the added space.
    let wrappable = |value: &RawValue| value.get().replace(",\"", ", \"");
    if let Ok(elements) = serde_json::from_str::<Vec<Box<RawValue>>>(text) {
        return Some(elements.iter().map(|element| wrappable(element)).collect());
    }
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    Some(members.iter().map(|(name, value)| format!("{name}: {}", wrappable(value))).collect())
}

/// Joins the elements of `own` that are missing in `other` to one text. Long elements and long lists are shortened.
fn shorten_list(own: &[String], other: &[String]) -> String {
    let differing = own.iter().filter(|element| !other.contains(element));
    let differing: Vec<String> = differing.map(|element| shorten(element, MAX_VALUE_CHARACTERS)).collect();
    match differing.len() {
        0 => "nothing else".to_owned(),
        count if count > MAX_LIST_ELEMENTS => {
            format!("{} and {} more", differing[..MAX_LIST_ELEMENTS].join("; "), count - MAX_LIST_ELEMENTS)
        }
        _ => differing.join("; "),
    }
}
