//! Report of a command: a title, facts and tables. It is printed as text or written as an HTML page, with charts and sortable
//! tables, without external resources.

use std::fmt::{self, Display, Formatter, Write};

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

const STYLE: &str = include_str!("../assets/report.css");
const SORT: &str = include_str!("../assets/report.js");

/// Height of a chart bar, including the gap to the next bar, in pixels.
const ROW_HEIGHT_PX: usize = 18;
/// Distance of the bars from the left edge of their chart, in pixels.
const BARS_LEFT_PX: usize = 130;
/// Width of the longest bar, in pixels.
const BARS_WIDTH_PX: usize = 240;

impl Report {
    /// Writes the report as an HTML page.
    ///
    /// # Errors
    /// `page` fails.
    pub fn write_page(&self, page: &mut impl Write) -> fmt::Result {
        let title = escape(&self.title);
        writeln!(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
        writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
        writeln!(page, "<title>{title}</title>\n<style>{STYLE}</style></head><body>\n<h1>{title}</h1>")?;
        let kind = std::mem::discriminant::<Part>;
        for parts in self.parts.chunk_by(|one, next| kind(one) == kind(next)) {
            match &parts[0] {
                Part::Fact(_) => writeln!(page, "<ul>")?,
                Part::Chart(..) => writeln!(page, "<div class=\"plots\">")?,
                Part::List(..) | Part::Table(_) => {}
            }
            for part in parts {
                match part {
                    Part::Fact(fact) => writeln!(page, "<li>{}</li>", breakable(&escape(fact)))?,
                    Part::Chart(title, bars) => write_bars(page, title, bars)?,
                    Part::List(title, list) => write_table(page, title, &list.headers(), list.cells())?,
                    Part::Table(table) => write_report_table(page, table)?,
                }
            }
            match &parts[0] {
                Part::Fact(_) => writeln!(page, "</ul>")?,
                Part::Chart(..) => writeln!(page, "</div>")?,
                Part::List(..) | Part::Table(_) => {}
            }
        }
        writeln!(page, "<script>{SORT}</script></body></html>")
    }
}

/// Allows a line break after the commas in rule parameters such as `a=1,b=2`.
fn breakable(text: &str) -> String {
    let mut breakable = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        breakable.push(character);
        if matches!(character, ',' | '+') && characters.peek().is_some_and(|next| next.is_alphabetic()) {
            breakable.push_str("<wbr>");
        }
    }
    breakable
}

fn write_report_table(page: &mut impl Write, table: &ReportTable) -> fmt::Result {
    let rows = table.rows.iter().map(|row| &row.cells).filter(|cells| !cells.is_empty());
    write_table(page, &table.heading(0, " "), table.columns, rows)?;
    table.notes.iter().try_for_each(|note| writeln!(page, "<p>{}</p>", escape(note)))
}

/// Writes a sortable table. On a phone, each cell shows the name of its column, and empty cells are left out.
fn write_table<'r>(
    page: &mut impl Write,
    title: &str,
    columns: &[&str],
    rows: impl Iterator<Item = &'r Vec<String>>,
) -> fmt::Result {
    writeln!(page, "<h2>{}</h2>", escape(title))?;
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    write!(page, "<table><thead><tr>")?;
    columns.iter().try_for_each(|column| write!(page, "<th><button>{column}</button></th>"))?;
    writeln!(page, "</tr></thead><tbody>")?;
    for cells in rows {
        write!(page, "<tr>")?;
        for (column, cell) in columns.iter().zip(cells) {
            write!(page, "<td data-column=\"{column}\">{}</td>", escape(cell))?;
        }
        writeln!(page, "</tr>")?;
    }
    writeln!(page, "</tbody></table>")
}

/// Escapes the characters that have a special meaning in HTML.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

fn write_bars(page: &mut impl Write, title: &str, bars: &[(String, u64)]) -> fmt::Result {
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or_default();
    if most == 0 {
        return Ok(());
    }
    let (width, height) = (BARS_LEFT_PX + BARS_WIDTH_PX + 90, bars.len() * ROW_HEIGHT_PX);
    write!(page, "<figure><figcaption>{}</figcaption>", escape(title))?;
    write!(page, r#"<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#)?;
    for ((label, count), row) in bars.iter().zip(0..) {
        let (top, length) = (row * ROW_HEIGHT_PX, bar_length(*count, most));
        let (label, text, label_end) = (escape(label), top + ROW_HEIGHT_PX - 5, BARS_LEFT_PX - 8);
        let (bar_top, bar_height) = (top + 3, ROW_HEIGHT_PX - 6);
        write!(page, r#"<text x="{label_end}" y="{text}" text-anchor="end">{label}</text>"#)?;
        write!(page, r#"<rect x="{BARS_LEFT_PX}" y="{bar_top}" width="{length}" height="{bar_height}"/>"#)?;
        write!(page, r#"<text x="{}" y="{text}">{count}</text>"#, BARS_LEFT_PX + length + 6)?;
    }
    writeln!(page, "</svg></figure>")
}

/// Width of the chart bar for `count`, in pixels. `most` is the largest count in the chart. If `count` is not 0, the
/// width is at least 1.
fn bar_length(count: u64, most: u64) -> usize {
    let pixels = u128::from(count) * BARS_WIDTH_PX as u128 / u128::from(most.max(1));
    let drawn = usize::try_from(pixels).unwrap_or(BARS_WIDTH_PX);
    if count > 0 { drawn.max(1) } else { 0 }
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

#[cfg(test)]
mod page_tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_counts() {
        let mut page = String::new();
        let counts = [("one", 1), ("none", 0), ("most", 1_000_000)];
        write_bars(&mut page, "Counts", &counts.map(|(label, count)| (label.to_owned(), count))).unwrap();
        for bar in [r#"y="3" width="1""#, r#"y="21" width="0""#, r#"y="39" width="240""#] {
            assert!(page.contains(bar), "{page}");
        }
        write_bars(&mut page, "Nothing", &[]).unwrap();
        assert!(!page.contains("Nothing"));
    }
}
