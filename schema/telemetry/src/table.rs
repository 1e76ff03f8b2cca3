//! Table that a command prints for a list: a header, aligned columns, a limited number of rows and a total.

use std::collections::VecDeque;
use std::io::IsTerminal;

use clap::Args;
use unicode_width::UnicodeWidthStr;

use crate::outln;
use crate::text::{escape_controls, group_digits, shorten};

/// Maximum number of printed rows without `--limit`.
const DEFAULT_LIMIT: usize = 50;
/// Number of spaces between two columns.
const GAP: usize = 2;
/// Minimum width of a wrapped column. If less is left, its texts are printed below the rows.
const MIN_WRAPPED: usize = 28;
/// Length of a shortened id, in characters. The beginning of an id is accepted instead of the id.
const SHORT_ID: usize = 12;
/// Indentation of a line below a row.
const INDENT: &str = "    ";

/// Output options of a command that prints a list.
#[derive(Debug, Clone, Copy, Args)]
pub struct ListArgs {
    /// Maximum number of rows, 0 for all; default: 50, or all with --json
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<usize>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

impl ListArgs {
    /// Maximum number of printed rows.
    pub fn max_rows(&self) -> usize {
        match self.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if self.json => usize::MAX,
            None => DEFAULT_LIMIT,
        }
    }
}

/// Column of a table: its header, and the alignment of its cells.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// Column that is aligned left. The last such column of a table wraps between words.
    Text(&'static str),
    /// Column of long ids, of which a narrow table shows the beginning.
    Id(&'static str),
    /// Column that is aligned right.
    Number(&'static str),
}

impl Column {
    fn header(self) -> &'static str {
        match self {
            Self::Text(header) | Self::Id(header) | Self::Number(header) => header,
        }
    }
}

/// Table of a list. If a row is too wide, its ids are shortened, and its last text column wraps between words, or goes
/// below the row.
#[derive(Debug)]
pub struct Table {
    nouns: [&'static str; 2],
    columns: Vec<Column>,
    max_rows: usize,
    keeps_newest: bool,
    total: usize,
    rows: VecDeque<TableRow>,
    note: String,
}

#[derive(Debug)]
struct TableRow {
    cells: Vec<String>,
    /// Lines that are printed below the row.
    details: Vec<String>,
}

impl Table {
    /// Creates an empty table that prints at most `max_rows` rows. `nouns` is the singular and the plural of the noun
    /// in the total line. For example, with `symbol` and `symbols`, the line is `1 symbol` or `2 symbols`.
    pub fn new(nouns: [&'static str; 2], columns: &[Column], max_rows: usize) -> Self {
        Self {
            nouns,
            columns: columns.to_vec(),
            max_rows,
            keeps_newest: false,
            total: 0,
            rows: VecDeque::new(),
            note: String::new(),
        }
    }

    /// Makes the table print the last rows instead of the first, for lists in chronological order.
    pub fn keep_newest(mut self) -> Self {
        self.keeps_newest = true;
        self
    }

    /// Adds a row.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.add_detailed_row(cells, []);
    }

    /// Adds a row, and lines that are printed below it.
    pub fn add_detailed_row(
        &mut self,
        cells: impl IntoIterator<Item = String>,
        details: impl IntoIterator<Item = String>,
    ) {
        self.total += 1;
        if self.rows.len() == self.max_rows {
            if !self.keeps_newest {
                return;
            }
            self.rows.pop_front();
        }
        let cells: Vec<String> = cells.into_iter().map(|cell| escape_controls(&cell)).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        let details = details.into_iter().map(|line| escape_controls(&line)).collect();
        self.rows.push_back(TableRow { cells, details });
    }

    /// Adds a text that is printed after the total, on the same line.
    pub fn add_note(&mut self, note: &str) {
        self.note.push_str(&format!("; {note}"));
    }

    /// Prints the table and the total. For a table without rows, prints only the sentence `empty`.
    pub fn print(&self, empty: &str) {
        if self.total == 0 {
            return outln!("{empty}");
        }
        for line in self.lines(output_width()) {
            outln!("{line}");
        }
    }

    pub(crate) fn headers(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.header()).collect()
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().map(|row| &row.cells)
    }

    /// Lines of the printed table and of the total. Without `width`, no line wraps.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let headers = self.headers().into_iter().map(str::to_owned).collect();
        let mut rows: Vec<Vec<String>> = vec![headers];
        rows.extend(self.cells().cloned());
        let mut layout = Layout::new(&self.columns, &rows, width);
        if layout.is_too_wide() {
            rows.iter_mut().for_each(|cells| self.shorten_ids(cells));
            layout = Layout::new(&self.columns, &rows, width);
        }
        let mut lines = layout.row_lines(&rows[0]);
        for (row, cells) in self.rows.iter().zip(&rows[1..]) {
            lines.extend(layout.row_lines(cells));
            lines.extend(row.details.iter().map(|line| format!("{INDENT}{line}")));
        }
        lines.push(self.total_line());
        lines
    }

    fn shorten_ids(&self, cells: &mut [String]) {
        for (column, cell) in self.columns.iter().zip(cells) {
            if matches!(column, Column::Id(_)) {
                *cell = shorten(cell, SHORT_ID);
            }
        }
    }

    fn total_line(&self) -> String {
        let Self { total, note, .. } = self;
        let noun = self.nouns[usize::from(*total != 1)];
        let (shown, total) = (self.rows.len(), group_digits(*total));
        if shown == self.total {
            return format!("{total} {noun}{note}");
        }
        let newest = if self.keeps_newest { "the newest " } else { "" };
        format!("showing {newest}{} of {total} {noun}; --limit 0 shows all{note}", group_digits(shown))
    }
}

/// Widths of the columns of a table, and the place of its wrapped column.
struct Layout<'a> {
    columns: &'a [Column],
    widths: Vec<usize>,
    /// Column that must wrap, if the table is too wide.
    wrapped: Option<WrappedColumn>,
}

/// Last text column of a table that is too wide.
#[derive(Clone, Copy)]
struct WrappedColumn {
    index: usize,
    /// Width of the lines below the rows, if the texts are printed there.
    width_below: Option<usize>,
}

impl WrappedColumn {
    fn is_below_at(self, index: usize) -> bool {
        self.index == index && self.width_below.is_some()
    }
}

impl<'a> Layout<'a> {
    fn new(columns: &'a [Column], rows: &[Vec<String>], width: Option<usize>) -> Self {
        let widest = |index: usize| rows.iter().map(|cells| cells[index].width()).max().unwrap_or_default();
        let mut widths: Vec<usize> = (0..columns.len()).map(widest).collect();
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let last = columns.iter().rposition(|column| matches!(column, Column::Text(_)));
        let wrapped = width.filter(|width| total > *width).zip(last).map(|(width, index)| {
            let left = widths[index].saturating_sub(total - width);
            let is_below = left < MIN_WRAPPED.min(widths[index]);
            widths[index] = left;
            let width_below = is_below.then(|| width.saturating_sub(INDENT.len()));
            WrappedColumn { index, width_below }
        });
        Self { columns, widths, wrapped }
    }

    fn is_too_wide(&self) -> bool {
        self.wrapped.is_some()
    }

    fn row_lines(&self, cells: &[String]) -> Vec<String> {
        let Some(WrappedColumn { index, width_below }) = self.wrapped else {
            return vec![self.line(cells, None)];
        };
        if let Some(width) = width_below {
            let mut lines = vec![self.line(cells, None)];
            let parts = wrap_words(&cells[index], width);
            lines.extend(parts.iter().filter(|part| !part.is_empty()).map(|part| format!("{INDENT}{part}")));
            return lines;
        }
        let (blank, mut lines) = (vec![String::new(); cells.len()], Vec::new());
        for (number, part) in wrap_words(&cells[index], self.widths[index]).iter().enumerate() {
            lines.push(self.line(if number == 0 { cells } else { &blank }, Some((index, part))));
        }
        lines
    }

    /// One line of a row. `replaced` is the index of a cell and the text in its place.
    fn line(&self, cells: &[String], replaced: Option<(usize, &str)>) -> String {
        let mut text = String::new();
        for (index, (column, width)) in self.columns.iter().zip(&self.widths).enumerate() {
            if self.wrapped.is_some_and(|wrapped| wrapped.is_below_at(index)) {
                continue;
            }
            let cell = match replaced {
                Some((replaced, part)) if replaced == index => part,
                _ => cells[index].as_str(),
            };
            let space = " ".repeat(width.saturating_sub(cell.width()));
            text += &match column {
                Column::Text(_) | Column::Id(_) => format!("{cell}{space}"),
                Column::Number(_) => format!("{space}{cell}"),
            };
            text += &" ".repeat(GAP);
        }
        text.trim_end().to_owned()
    }
}

/// Width of the output, in terminal columns: width of the terminal, else `COLUMNS`. `None` for other output, such as a
/// pipe.
#[expect(clippy::disallowed_methods, reason = "a variable of every terminal, not a setting of the service")]
pub fn output_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let of_terminal = match stdout.is_terminal() {
        true => terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0)),
        false => None,
    };
    let of_variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.or_else(of_variable)
}

/// Divides a text into lines of at most `width` terminal columns. A longer word gets a separate line.
fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::Text("name"), Column::Number("rows"), Column::Text("state")];

    fn table(max_rows: usize) -> Table {
        let mut table = Table::new(["run", "runs"], &COLUMNS, max_rows);
        table.add_row(["a", "5", "completed, 6 rejects"].map(str::to_owned));
        table.add_detailed_row(["Ökö", "12345", "undone\nby x"].map(str::to_owned), ["detail".to_owned()]);
        table.add_row(["c", "", ""].map(str::to_owned));
        table
    }

    #[test]
    fn values_are_aligned_and_only_the_last_text_wraps_between_words() {
        let wide = [
            "name   rows  state",
            "a         5  completed, 6 rejects",
            r"Ökö   12345  undone\nby x",
            "    detail",
            "c",
            "3 runs",
        ];
        assert_eq!(table(9).lines(Some(80)), wide);
        let narrow = table(9).lines(Some(20));
        let below = ["name   rows", "    state", "a         5", "    completed, 6", "    rejects"];
        assert_eq!(narrow[..5], below);
    }

    #[test]
    fn every_note_follows_the_total() {
        let mut table = table(9);
        table.add_note("one");
        table.add_note("two");
        assert_eq!(table.lines(Some(80)).last().map(String::as_str), Some("3 runs; one; two"));
    }

    #[test]
    fn a_narrow_table_shortens_ids_before_it_wraps() {
        let columns = [Column::Id("run"), Column::Text("source"), Column::Text("state")];
        let mut table = Table::new(["run", "runs"], &columns, 9);
        let id = "7a07d4a0bc2168329765b1dc1700a443".to_owned();
        let state = "completed, 1 of 2 files refused, excluded by ann (wrong currency)".to_owned();
        table.add_row([id.clone(), "desk".to_owned(), state.clone()]);
        assert_eq!(table.lines(None)[1], format!("{id}  desk    {state}"));
        let narrow = [
            "run            source  state",
            "7a07d4a0bc21…  desk    completed, 1 of 2 files refused,",
            "                       excluded by ann (wrong currency)",
            "1 run",
        ];
        assert_eq!(table.lines(Some(60)), narrow);
        assert_eq!(
            table.lines(Some(40))[2..4],
            ["7a07d4a0bc21…  desk", "    completed, 1 of 2 files refused,"]
        );
    }

    #[test]
    fn the_total_says_how_many_rows_are_missing() {
        assert_eq!(table(2).lines(Some(80)).last().unwrap(), "showing 2 of 3 runs; --limit 0 shows all");
        let newest = table(9);
        assert_eq!(newest.rows.len(), 3);
        let mut newest = Table::new(["run", "runs"], &COLUMNS[..1], 2).keep_newest();
        (0..1234).for_each(|number| newest.add_row([number.to_string()]));
        let expected = ["name", "1232", "1233", "showing the newest 2 of 1,234 runs; --limit 0 shows all"];
        assert_eq!(newest.lines(Some(80)), expected);
    }
}
