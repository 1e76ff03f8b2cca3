//! `--html`: the comparison as one page with sortable tables and no external resources.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;

use anyhow::Context;

use super::accumulator::TableDiff;
use super::atomic_file::AtomicFile;
use super::cell::CellValue;
use super::difference::RowDifference;
use super::plot;
use super::ranking::{DiffTopic, TopicSummary};
use super::result::GenerationDiff;
use super::text::{shorten_values, topic_title};

const STYLE: &str = include_str!("../../../assets/diff.css");
const SORT: &str = include_str!("../../../assets/diff.js");

const TABLE_COLUMNS: [&str; 5] = ["table", "rows before", "rows after", "differing", "in columns"];
const TOPIC_COLUMNS: [&str; 6] = ["symbol", "figure", "before", "after", "size", "why"];
const ROW_COLUMNS: [&str; 7] = ["symbol", "key", "change", "column", "before", "after", "why"];

/// Created file without content.
#[derive(Debug)]
pub(super) struct HtmlReport {
    created: File,
    file: AtomicFile,
}

impl HtmlReport {
    pub(super) fn create(file: AtomicFile) -> anyhow::Result<Self> {
        Ok(Self { created: file.create()?, file })
    }

    /// Writes the page.
    pub(super) fn write(self, diff: &GenerationDiff) -> anyhow::Result<()> {
        let Self { mut created, file } = self;
        let mut text = String::new();
        write_page(&mut text, diff)?;
        created.write_all(text.as_bytes()).with_context(|| file.to_string())?;
        file.finish()
    }
}

fn write_page(page: &mut String, diff: &GenerationDiff) -> fmt::Result {
    let heading = format!("Generation {} against {}", diff.a.generation, diff.b.generation);
    writeln!(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(page, "<title>{heading}</title>\n<style>{STYLE}</style></head><body>\n<h1>{heading}</h1>")?;
    writeln!(
        page,
        "<p>Before is generation {}, after is generation {}.</p>",
        diff.a.generation, diff.b.generation
    )?;
    write_reasons(page, diff)?;
    write_plots(page, diff)?;
    write_tables(page, &diff.tables)?;
    diff.ranked.iter().try_for_each(|ranked| write_topic(page, ranked))?;
    diff.tables.iter().filter(|table| table.differing > 0).try_for_each(|table| write_rows(page, table))?;
    writeln!(page, "<script>{SORT}</script></body></html>")
}

fn write_reasons(page: &mut String, diff: &GenerationDiff) -> fmt::Result {
    if diff.identical {
        return writeln!(page, "<p>Nothing differs.</p>");
    }
    writeln!(page, "<ul>")?;
    for reason in &diff.reasons {
        writeln!(page, "<li>They differ in {}</li>", escape_html(reason))?;
    }
    writeln!(page, "</ul>")
}

fn write_plots(page: &mut String, diff: &GenerationDiff) -> fmt::Result {
    let named = |name: &dyn fmt::Display, count: u64| (escape_html(&name.to_string()), count);
    writeln!(page, "<div class=\"plots\">")?;
    let differing = diff.tables.iter().filter(|table| table.differing > 0);
    let by_table: Vec<_> = differing.map(|table| named(&table.table, table.differing)).collect();
    plot::write_bars(page, "Differing rows by table", &by_table)?;
    let topics: Vec<_> = diff
        .ranked
        .iter()
        .map(|ranked| named(&format!("{:?}", ranked.topic).to_lowercase(), ranked.count))
        .collect();
    plot::write_bars(page, "Securities by what changes", &topics)?;
    for ranked in &diff.ranked {
        let sizes = ranked.sizes.iter().map(|bucket| match bucket.below {
            Some(below) => named(&format!("below {below}"), bucket.count),
            None => named(&"more", bucket.count),
        });
        let sizes: Vec<_> = sizes.collect();
        plot::write_bars(page, &format!("How much {}", topic_title(ranked.topic)), &sizes)?;
    }
    let years: Vec<_> = diff.price_days.iter().map(|(year, days)| named(year, *days)).collect();
    plot::write_bars(page, "Days of prices by year", &years)?;
    writeln!(page, "</div>")
}

fn write_tables(page: &mut String, tables: &[TableDiff]) -> fmt::Result {
    begin_table(page, "Tables", &TABLE_COLUMNS)?;
    for table in tables {
        let columns: Vec<String> =
            table.columns.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let counts = [table.rows_a, table.rows_b, table.differing].map(|count| count.to_string());
        let cells = [std::slice::from_ref(&table.table), &counts[..], &[columns.join(", ")]].concat();
        write_row(page, &TABLE_COLUMNS, cells)?;
    }
    end_table(page)
}

fn write_topic(page: &mut String, ranked: &TopicSummary) -> fmt::Result {
    let heading = format!("{} {}", ranked.count, topic_title(ranked.topic));
    begin_table(page, &heading, &TOPIC_COLUMNS)?;
    for finding in &ranked.first {
        let size =
            if ranked.topic == DiffTopic::Securities { String::new() } else { finding.size.to_string() };
        let [a, b] = shorten_values(&finding.a, &finding.b);
        let why = finding.why.join("\n");
        write_row(
            page,
            &TOPIC_COLUMNS,
            vec![finding.symbol.clone(), finding.figure.clone(), a, b, size, why],
        )?;
    }
    end_table(page)?;
    write_hidden_count(page, ranked.count, ranked.first.len())
}

fn write_rows(page: &mut String, table: &TableDiff) -> fmt::Result {
    let heading = format!("{} of {}", table.differing, table.table);
    begin_table(page, &heading, &ROW_COLUMNS)?;
    for row in &table.rows {
        for changed in &row.columns {
            if changed.a != CellValue::Null || changed.b != CellValue::Null {
                write_row(page, &ROW_COLUMNS, value_cells(row, &changed.column, &changed.a, &changed.b))?;
            }
        }
    }
    end_table(page)?;
    write_hidden_count(page, table.differing, table.rows.len())
}

fn value_cells(row: &RowDifference, column: &str, a: &CellValue, b: &CellValue) -> Vec<String> {
    let [a, b] = shorten_values(a, b);
    let (key, why) = (row.rest_of_key(), row.why.join("\n"));
    vec![row.owner(), key, row.change.to_string(), column.to_owned(), a, b, why]
}

fn begin_table(page: &mut String, heading: &str, columns: &[&str]) -> fmt::Result {
    write!(page, "<h2>{}</h2>\n<table><thead><tr>", escape_html(heading))?;
    columns.iter().try_for_each(|column| write!(page, "<th><button>{column}</button></th>"))?;
    writeln!(page, "</tr></thead><tbody>")
}

/// Writes a row. On a phone, each cell has the name of its column before it; empty cells are left out there.
fn write_row(page: &mut String, columns: &[&str], cells: Vec<String>) -> fmt::Result {
    write!(page, "<tr>")?;
    for (column, cell) in columns.iter().zip(&cells) {
        write!(page, "<td data-column=\"{column}\">{}</td>", escape_html(cell))?;
    }
    writeln!(page, "</tr>")
}

fn end_table(page: &mut String) -> fmt::Result {
    writeln!(page, "</tbody></table>")
}

fn write_hidden_count(page: &mut String, count: u64, shown: usize) -> fmt::Result {
    match count.saturating_sub(shown as u64) {
        0 => Ok(()),
        hidden => writeln!(page, "<p>… and {hidden} more; <code>--csv FILE</code> has all.</p>"),
    }
}

fn escape_html(text: &str) -> String {
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
