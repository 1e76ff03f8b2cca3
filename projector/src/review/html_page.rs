//! HTML page with charts and sortable tables, without external resources.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context;

use super::atomic_file::AtomicFile;

const STYLE: &str = include_str!("../../assets/diff.css");
const SORT: &str = include_str!("../../assets/diff.js");

/// Height of a chart bar, including the gap to the next bar, in pixels.
const ROW_HEIGHT_PX: usize = 18;
/// Distance of the bars from the left edge of their chart, in pixels.
const BARS_LEFT_PX: usize = 130;
/// Width of the longest bar, in pixels.
const BARS_WIDTH_PX: usize = 240;

/// HTML file that is created empty, under a temporary name. [`HtmlFile::write`] fills it and renames it.
#[derive(Debug)]
pub(crate) struct HtmlFile {
    created: File,
    file: AtomicFile,
}

impl HtmlFile {
    /// Creates the file. Callers create it before they compute the report, so that a file error is reported early.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        Ok(Self { created, file })
    }

    /// Writes the page and gives the file its final name. `heading` is the title of the page. `write_body` writes the
    /// content below the title.
    pub(crate) fn write(
        self,
        heading: &str,
        write_body: impl FnOnce(&mut String) -> fmt::Result,
    ) -> anyhow::Result<()> {
        let Self { mut created, file } = self;
        let (mut page, heading) = (String::new(), escape_html(heading));
        writeln!(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
        writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
        writeln!(page, "<title>{heading}</title>\n<style>{STYLE}</style></head><body>\n<h1>{heading}</h1>")?;
        write_body(&mut page)?;
        writeln!(page, "<script>{SORT}</script></body></html>")?;
        created.write_all(page.as_bytes()).with_context(|| file.to_string())?;
        file.finish()
    }
}

/// Writes sentences as an HTML list. Rule parameters such as `a=1,b=2` may break after a comma.
pub(crate) fn write_list(page: &mut String, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(page, "<ul>")?;
    lines.iter().try_for_each(|line| writeln!(page, "<li>{}</li>", breakable(&escape_html(line))))?;
    writeln!(page, "</ul>")
}

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

/// Writes a sortable table. On a phone, each cell shows the name of its column, and empty cells are left out.
pub(crate) fn write_table(
    page: &mut String,
    heading: &str,
    columns: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> fmt::Result {
    write!(page, "<h2>{}</h2>\n<table><thead><tr>", escape_html(heading))?;
    columns.iter().try_for_each(|column| write!(page, "<th><button>{column}</button></th>"))?;
    writeln!(page, "</tr></thead><tbody>")?;
    for cells in rows {
        write!(page, "<tr>")?;
        for (column, cell) in columns.iter().zip(&cells) {
            write!(page, "<td data-column=\"{column}\">{}</td>", escape_html(cell))?;
        }
        writeln!(page, "</tr>")?;
    }
    writeln!(page, "</tbody></table>")
}

/// Escapes the characters that have a special meaning in HTML.
pub(crate) fn escape_html(text: &str) -> String {
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

/// Writes a chart with one horizontal bar per label.
pub(crate) fn write_bars(page: &mut String, title: &str, counts: &[(String, u64)]) -> fmt::Result {
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
    if most == 0 {
        return Ok(());
    }
    let (width, height) = (BARS_LEFT_PX + BARS_WIDTH_PX + 90, counts.len() * ROW_HEIGHT_PX);
    write!(page, "<figure><figcaption>{title}</figcaption>")?;
    write!(page, r#"<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#)?;
    for ((label, count), place) in counts.iter().zip(0..) {
        let (top, length) = (place * ROW_HEIGHT_PX, bar_length(*count, most));
        let text = top + ROW_HEIGHT_PX - 5;
        write!(page, r#"<text x="{}" y="{text}" text-anchor="end">{label}</text>"#, BARS_LEFT_PX - 8)?;
        write!(
            page,
            r#"<rect x="{BARS_LEFT_PX}" y="{}" width="{length}" height="{}"/>"#,
            top + 3,
            ROW_HEIGHT_PX - 6
        )?;
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
