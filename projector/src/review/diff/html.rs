//! `projector diff --html`: the differences as one page with sortable tables and no external resources.

use std::fmt::{self, Write as _};

use super::accumulator::{Differences, TableDiff};
use super::cell::CellValue;
use super::difference::ColumnDifference;
use super::ranking::{DiffTopic, TopicSummary};
use super::result::GenerationDiff;
use super::text::{shorten_values, topic_title};
use crate::review::html_page::{HtmlFile, escape_html, write_bars, write_list, write_table};

const TABLE_COLUMNS: [&str; 5] = ["table", "rows before", "rows after", "differing", "in columns"];
const TOPIC_COLUMNS: [&str; 6] = ["symbol", "figure", "before", "after", "size", "why"];
const ROW_COLUMNS: [&str; 7] = ["symbol", "key", "change", "column", "before", "after", "why"];

pub(super) fn write_page(file: HtmlFile, diff: &GenerationDiff) -> anyhow::Result<()> {
    let heading = format!("Generation {} against {}", diff.a.generation, diff.b.generation);
    file.write(&heading, |page| {
        let (before, after) = (diff.a.generation, diff.b.generation);
        writeln!(page, "<p>Before is generation {before}, after is generation {after}.</p>")?;
        if diff.differences.identical {
            writeln!(page, "<p>Nothing differs.</p>")?;
        } else {
            let reasons = diff.reasons.iter().map(|reason| format!("They differ in {reason}"));
            write_list(page, &reasons.collect::<Vec<_>>())?;
        }
        write_differences(page, &diff.differences)
    })
}

/// Writes charts and tables of differences.
pub(crate) fn write_differences(page: &mut String, found: &Differences) -> fmt::Result {
    write_plots(page, found)?;
    write_tables(page, &found.tables)?;
    found.ranked.iter().try_for_each(|ranked| write_topic(page, ranked))?;
    found.tables.iter().filter(|table| table.differing > 0).try_for_each(|table| write_rows(page, table))
}

fn write_plots(page: &mut String, found: &Differences) -> fmt::Result {
    let named = |name: &dyn fmt::Display, count: u64| (escape_html(&name.to_string()), count);
    writeln!(page, "<div class=\"plots\">")?;
    let differing = found.tables.iter().filter(|table| table.differing > 0);
    let by_table: Vec<_> = differing.map(|table| named(&table.table, table.differing)).collect();
    write_bars(page, "Differing rows by table", &by_table)?;
    let topics: Vec<_> = found
        .ranked
        .iter()
        .map(|ranked| named(&format!("{:?}", ranked.topic).to_lowercase(), ranked.count))
        .collect();
    write_bars(page, "Securities by what changes", &topics)?;
    for ranked in &found.ranked {
        let sizes = ranked.sizes.iter().map(|bucket| match bucket.below {
            Some(below) => named(&format!("below {below}"), bucket.count),
            None => named(&"more", bucket.count),
        });
        let sizes: Vec<_> = sizes.collect();
        write_bars(page, &format!("How much {}", topic_title(ranked.topic)), &sizes)?;
    }
    let years: Vec<_> = found.price_days.iter().map(|(year, days)| named(year, *days)).collect();
    write_bars(page, "Days of prices by year", &years)?;
    writeln!(page, "</div>")
}

fn write_tables(page: &mut String, tables: &[TableDiff]) -> fmt::Result {
    let rows = tables.iter().map(|table| {
        let columns: Vec<String> =
            table.columns.iter().map(|(name, count)| format!("{name}\u{a0}{count}")).collect();
        let counts = [table.rows_a, table.rows_b, table.differing].map(|count| count.to_string());
        [std::slice::from_ref(&table.table), &counts[..], &[columns.join(", ")]].concat()
    });
    write_table(page, "Tables", &TABLE_COLUMNS, rows)
}

fn write_topic(page: &mut String, ranked: &TopicSummary) -> fmt::Result {
    let heading = format!("{} {}", ranked.count, topic_title(ranked.topic));
    let rows = ranked.first.iter().map(|finding| {
        let size =
            if ranked.topic == DiffTopic::Securities { String::new() } else { finding.size.to_string() };
        let [a, b] = shorten_values(&finding.a, &finding.b);
        vec![finding.symbol.clone(), finding.figure.clone(), a, b, size, finding.why.join("\n")]
    });
    write_table(page, &heading, &TOPIC_COLUMNS, rows)?;
    write_hidden_count(page, ranked.count, ranked.first.len())
}

fn write_rows(page: &mut String, table: &TableDiff) -> fmt::Result {
    let rows = if table.differing == 1 { "row" } else { "rows" };
    let heading = format!("{} differing {rows} of {}", table.differing, table.table);
    let is_explained = table.rows.iter().any(|row| !row.why.is_empty());
    let rows = table.rows.iter().flat_map(|row| {
        let why = match row.why.is_empty() && is_explained {
            true => "a larger --limit explains this row".to_owned(),
            false => row.why.join("\n"),
        };
        let has_value =
            |changed: &&ColumnDifference| changed.a != CellValue::Null || changed.b != CellValue::Null;
        // Each differing column has a line. Only the first line of a row has the explanation of the row.
        row.columns.iter().filter(has_value).enumerate().map(move |(position, changed)| {
            let why = if position == 0 { why.clone() } else { String::new() };
            let [a, b] = shorten_values(&changed.a, &changed.b);
            vec![row.owner(), row.rest_of_key(), row.change.to_string(), changed.column.clone(), a, b, why]
        })
    });
    write_table(page, &heading, &ROW_COLUMNS, rows)?;
    write_hidden_count(page, table.differing, table.rows.len())
}

fn write_hidden_count(page: &mut String, count: u64, shown: usize) -> fmt::Result {
    match count.saturating_sub(shown as u64) {
        0 => Ok(()),
        hidden => writeln!(page, "<p>… and {hidden} more; <code>--csv FILE</code> has all.</p>"),
    }
}
