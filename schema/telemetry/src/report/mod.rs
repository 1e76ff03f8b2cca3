//! Report of a command: a title, facts and tables. It is printed as text or written as an HTML page.

mod page;

use std::fmt::{Display, Formatter};

use serde::Serialize;

use crate::table::{Table, output_width};
use crate::{out, outln};

/// Prints a value as one line of JSON.
///
/// # Errors
/// The value has no JSON form.
pub fn print_json(value: &impl Serialize) -> Result<(), serde_json::Error> {
    outln!("{}", serde_json::to_string(value)?);
    Ok(())
}

/// Prints a command's result: as one line of JSON if `json` is true, otherwise as the report that `to_report` makes of it.
///
/// # Errors
/// The result has no JSON form.
pub fn print_result<T: Serialize>(
    result: &T,
    json: bool,
    to_report: impl FnOnce(&T) -> Report,
) -> Result<(), serde_json::Error> {
    if json {
        return print_json(result);
    }
    to_report(result).print();
    Ok(())
}

/// Report of a command. Facts and tables appear in the order in which they are added.
#[derive(Debug)]
pub struct Report {
    title: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Fact(String),
    /// Title on the page, and the list.
    List(&'static str, Table),
    Table(ReportTable),
    /// Title and labeled bars. A chart appears only on the page.
    Chart(String, Vec<(String, u64)>),
}

/// Table of a report. Each of its rows has lines of text, and cells on the page.
#[derive(Debug)]
pub struct ReportTable {
    count: Option<u64>,
    title: String,
    columns: &'static [&'static str],
    rows: Vec<ReportRow>,
    notes: Vec<String>,
}

/// Row of a table. A row without lines appears only on the page, and a row without cells only in the text.
#[derive(Debug)]
struct ReportRow {
    lines: Vec<String>,
    cells: Vec<String>,
}

/// Line of text about one security or other subject, indented below the title of its table.
pub fn subject_line(subject: &str, text: &str) -> String {
    format!("        {subject:<10} {text}")
}

/// Line of text that belongs to the [`subject_line`] above it.
pub fn detail_line(text: &str) -> String {
    format!("                   {text}")
}

impl ReportTable {
    /// Creates an empty table. `columns` are the headers of its cells.
    pub fn new(title: impl Into<String>, columns: &'static [&'static str]) -> Self {
        Self { count: None, title: title.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Puts a number before the title.
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Adds a row with lines of text, and with cells for the page.
    pub fn add_row(
        &mut self,
        lines: impl IntoIterator<Item = String>,
        cells: impl IntoIterator<Item = String>,
    ) {
        let (lines, cells) = (lines.into_iter().collect(), cells.into_iter().collect());
        self.rows.push(ReportRow { lines, cells });
    }

    /// Adds a line below the table.
    pub fn add_note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds a note about `hidden` rows that the table leaves out; nothing if it has all rows.
    pub fn add_hidden_count(&mut self, hidden: u64, hint: &str) {
        if hidden > 0 {
            self.add_note(format!("… and {hidden} more{hint}"));
        }
    }

    fn heading(&self, width: usize, gap: &str) -> String {
        match self.count {
            Some(count) => format!("{count:>width$}{gap}{}", self.title),
            None => self.title.clone(),
        }
    }

    fn has_text(&self) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| !row.lines.is_empty())
    }
}

impl Report {
    /// Creates a report without content. A report that is only printed may have an empty title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), parts: Vec::new() }
    }

    /// Adds a sentence.
    pub fn add_fact(&mut self, fact: impl Into<String>) {
        self.parts.push(Part::Fact(fact.into()));
    }

    /// Adds a list. `title` is its title on the page.
    pub fn add_list(&mut self, title: &'static str, list: Table) {
        self.parts.push(Part::List(title, list));
    }

    /// Adds a table.
    pub fn add_table(&mut self, table: ReportTable) {
        self.parts.push(Part::Table(table));
    }

    /// Adds a table unless it has no rows.
    pub fn add_filled_table(&mut self, table: ReportTable) {
        if !table.rows.is_empty() {
            self.add_table(table);
        }
    }

    /// Adds a chart with one horizontal bar per label, which appears only on the page.
    pub fn add_chart(&mut self, title: impl Into<String>, bars: Vec<(String, u64)>) {
        self.parts.push(Part::Chart(title.into(), bars));
    }

    /// Prints the report as text.
    pub fn print(&self) {
        out!("{self}");
    }

    fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        lines.extend((!self.title.is_empty()).then(|| self.title.clone()));
        for part in &self.parts {
            match part {
                Part::Fact(fact) => lines.push(fact.clone()),
                Part::List(_, list) => lines.extend(list.lines(width)),
                Part::Table(table) if table.has_text() => {
                    lines.extend([String::new(), table.heading(6, "  ")]);
                    lines.extend(table.rows.iter().flat_map(|row| row.lines.iter().cloned()));
                    lines.extend(table.notes.iter().map(|note| format!("        {note}")));
                }
                Part::Table(_) | Part::Chart(..) => {}
            }
        }
        lines
    }
}

/// Text of the report, in the width of the output.
impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.lines(output_width()).iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_same_as_text_and_as_a_page() {
        let mut report = Report::new("Effect of a load");
        report.add_fact("1 of 2 securities changed");
        report.add_chart("Differing rows", vec![("metrics".to_owned(), 1)]);
        let mut table = ReportTable::new("prices change", &["symbol", "before", "after"]).with_count(3);
        let cells = ["KO", "50", "<55"].map(str::to_owned);
        table.add_row([subject_line("KO", "50 -> <55"), detail_line("a correction")], cells);
        table.add_hidden_count(2, "");
        report.add_table(table);
        report.add_filled_table(ReportTable::new("flags", &["flag"]));
        let lines = [
            "Effect of a load",
            "1 of 2 securities changed",
            "",
            "     3  prices change",
            "        KO         50 -> <55",
            "                   a correction",
            "        … and 2 more",
        ];
        assert_eq!(report.lines(Some(80)), lines);
        let mut page = String::new();
        report.write_page(&mut page).unwrap();
        for part in [
            "<h1>Effect of a load</h1>",
            "<li>1 of 2 securities changed</li>",
            "<figcaption>Differing rows</figcaption>",
            "<h2>3 prices change</h2>",
            "<td data-column=\"after\">&lt;55</td>",
            "<p>… and 2 more</p>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("flags"), "{page}");
    }
}
