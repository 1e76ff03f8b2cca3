//! HTML page of a report, with charts and sortable tables, without external resources.

use std::fmt::{self, Write};

use super::{Part, Report, ReportTable};

const STYLE: &str = include_str!("../../assets/report.css");
const SORT: &str = include_str!("../../assets/report.js");

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
