//! HTML page with charts and sortable tables, without external resources.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context;

use super::atomic_file::AtomicFile;

pub(crate) use super::html_plot::write_bars;

const STYLE: &str = include_str!("../../assets/diff.css");
const SORT: &str = include_str!("../../assets/diff.js");

/// HTML file that exists under a temporary name and gets its content later.
#[derive(Debug)]
pub(crate) struct HtmlFile {
    created: File,
    file: AtomicFile,
}

impl HtmlFile {
    /// Creates the file before the report is computed, so that a file error is reported early.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = AtomicFile::new(path)?;
        Ok(Self { created: file.create()?, file })
    }

    /// Writes the page. `heading` is its title; `write_body` writes the content below the title.
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

/// Writes a list of sentences. A sentence can wrap after each comma and plus sign.
pub(crate) fn write_list(page: &mut String, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(page, "<ul>")?;
    lines.iter().try_for_each(|line| writeln!(page, "<li>{}</li>", breakable(&escape_html(line))))?;
    writeln!(page, "</ul>")
}

/// Text that may wrap at the commas between rule parameters (`a=1,b=2`).
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

/// Replaces the characters that have a meaning in HTML.
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
