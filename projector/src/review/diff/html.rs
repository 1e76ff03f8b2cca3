//! `--html`: the comparison as one page, which needs no network and sorts its tables.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;

use anyhow::Context;

use super::cell::Cell;
use super::difference::Difference;
use super::found::Diff;
use super::plot;
use super::ranking::{Ranked, Topic};
use super::tally::TableDiff;
use super::text::{short, title};
use super::unfinished::Unfinished;

const STYLE: &str = include_str!("../../../assets/diff.css");
const SORT: &str = include_str!("../../../assets/diff.js");

/// The file while nothing is written to it.
#[derive(Debug)]
pub(super) struct Page {
    created: File,
    file: Unfinished,
}

impl Page {
    pub(super) fn begin(file: Unfinished) -> anyhow::Result<Self> {
        Ok(Self { created: file.create()?, file })
    }

    /// Writes the page.
    pub(super) fn write(self, diff: &Diff) -> anyhow::Result<()> {
        let Self { mut created, file } = self;
        let mut text = String::new();
        page(&mut text, diff)?;
        created.write_all(text.as_bytes()).with_context(|| file.to_string())?;
        file.finish()
    }
}

fn page(page: &mut String, diff: &Diff) -> fmt::Result {
    let heading = format!("Generation {} against {}", diff.a.generation, diff.b.generation);
    writeln!(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(page, "<title>{heading}</title>\n<style>{STYLE}</style></head><body>\n<h1>{heading}</h1>")?;
    reasons(page, diff)?;
    plots(page, diff)?;
    tables(page, &diff.tables)?;
    diff.ranked.iter().try_for_each(|ranked| topic(page, ranked))?;
    diff.tables.iter().filter(|table| table.differing > 0).try_for_each(|table| rows(page, table))?;
    writeln!(page, "<script>{SORT}</script></body></html>")
}

fn reasons(page: &mut String, diff: &Diff) -> fmt::Result {
    if diff.identical {
        return writeln!(page, "<p>Nothing differs.</p>");
    }
    writeln!(page, "<ul>")?;
    for reason in &diff.reasons {
        writeln!(page, "<li>They differ in {}</li>", escaped(reason))?;
    }
    writeln!(page, "</ul>")
}

fn plots(page: &mut String, diff: &Diff) -> fmt::Result {
    let named = |name: &dyn fmt::Display, count: u64| (escaped(&name.to_string()), count);
    writeln!(page, "<div class=\"plots\">")?;
    let differing = diff.tables.iter().filter(|table| table.differing > 0);
    let by_table: Vec<_> = differing.map(|table| named(&table.table, table.differing)).collect();
    plot::bars(page, "Differing rows by table", &by_table)?;
    let topics: Vec<_> = diff
        .ranked
        .iter()
        .map(|ranked| named(&format!("{:?}", ranked.topic).to_lowercase(), ranked.count))
        .collect();
    plot::bars(page, "Securities by what changes", &topics)?;
    for ranked in &diff.ranked {
        let sizes = ranked.sizes.iter().map(|bucket| match bucket.below {
            Some(below) => named(&format!("below {below}"), bucket.count),
            None => named(&"more", bucket.count),
        });
        let sizes: Vec<_> = sizes.collect();
        plot::bars(page, &format!("How much {}", title(ranked.topic)), &sizes)?;
    }
    let years: Vec<_> = diff.price_days.iter().map(|(year, days)| named(year, *days)).collect();
    plot::bars(page, "Days of prices by year", &years)?;
    writeln!(page, "</div>")
}

fn tables(page: &mut String, tables: &[TableDiff]) -> fmt::Result {
    begin(page, "Tables", &["table", "rows", "rows after", "differing", "in columns"])?;
    for table in tables {
        let columns: Vec<String> =
            table.columns.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let counts = [table.rows_a, table.rows_b, table.differing].map(|count| count.to_string());
        line(page, [std::slice::from_ref(&table.table), &counts[..], &[columns.join(", ")]].concat())?;
    }
    end(page)
}

fn topic(page: &mut String, ranked: &Ranked) -> fmt::Result {
    let heading = format!("{} {}", ranked.count, title(ranked.topic));
    begin(page, &heading, &["symbol", "figure", "before", "after", "size", "why"])?;
    for finding in &ranked.first {
        let size = if ranked.topic == Topic::Securities { String::new() } else { finding.size.to_string() };
        let (a, b) = (short(&finding.a), short(&finding.b));
        line(page, vec![finding.symbol.clone(), finding.figure.clone(), a, b, size, finding.why.join("\n")])?;
    }
    end(page)?;
    hidden(page, ranked.count, ranked.first.len())
}

fn rows(page: &mut String, table: &TableDiff) -> fmt::Result {
    let heading = format!("{} of {}", table.differing, table.table);
    begin(page, &heading, &["symbol", "key", "change", "column", "before", "after", "why"])?;
    for row in &table.rows {
        for changed in &row.columns {
            if changed.a != Cell::Null || changed.b != Cell::Null {
                line(page, cells(row, &changed.column, &changed.a, &changed.b))?;
            }
        }
    }
    end(page)?;
    hidden(page, table.differing, table.rows.len())
}

fn cells(row: &Difference, column: &str, a: &Cell, b: &Cell) -> Vec<String> {
    vec![
        row.owner(),
        row.rest_of_key(),
        row.change.to_string(),
        column.to_owned(),
        short(a),
        short(b),
        row.why.join("\n"),
    ]
}

fn begin(page: &mut String, heading: &str, columns: &[&str]) -> fmt::Result {
    write!(page, "<h2>{}</h2>\n<table><thead><tr>", escaped(heading))?;
    columns.iter().try_for_each(|column| write!(page, "<th><button>{column}</button></th>"))?;
    writeln!(page, "</tr></thead><tbody>")
}

fn line(page: &mut String, cells: Vec<String>) -> fmt::Result {
    write!(page, "<tr>")?;
    cells.iter().try_for_each(|cell| write!(page, "<td>{}</td>", escaped(cell)))?;
    writeln!(page, "</tr>")
}

fn end(page: &mut String) -> fmt::Result {
    writeln!(page, "</tbody></table>")
}

fn hidden(page: &mut String, count: u64, shown: usize) -> fmt::Result {
    match count.saturating_sub(shown as u64) {
        0 => Ok(()),
        hidden => writeln!(page, "<p>… and {hidden} more; <code>--csv FILE</code> has all.</p>"),
    }
}

fn escaped(text: &str) -> String {
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
