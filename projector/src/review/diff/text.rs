//! Text output of a comparison.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use telemetry::outln;
use telemetry::table::{Column, Table};

use super::accumulator::TableDiff;
use super::cell::CellValue;
use super::difference::{ChangeKind, RowDifference};
use super::ranking::{DiffTopic, TopicSummary};
use super::result::GenerationDiff;

/// Maximum length of a value in the output, in characters.
const MAX_VALUE_CHARACTERS: usize = 60;
/// Maximum number of printed elements of a list value. Only elements that differ between the generations are printed.
const MAX_LIST_ELEMENTS: usize = 5;

/// Prints a comparison with up to `limit` rows per table.
pub(crate) fn print_diff(diff: &GenerationDiff, limit: usize) {
    outln!("generation {} (before) against {} (after)", diff.a.generation, diff.b.generation);
    diff.reasons.iter().for_each(|reason| outln!("  differs in {reason}"));
    let columns = [
        Column::Text("table"),
        Column::Number("before"),
        Column::Number("after"),
        Column::Number("differing"),
    ];
    let mut tables = Table::new(["table", "tables"], &columns, usize::MAX);
    for table in &diff.differences.tables {
        let counts = [table.rows_a, table.rows_b, table.differing].map(|count| count.to_string());
        tables.add_row([table.table.clone()].into_iter().chain(counts));
    }
    tables.print("no table was compared");
    diff.differences.ranked.iter().for_each(|ranked| print_topic(ranked, limit));
    diff.differences.tables.iter().for_each(|table| print_rows(table, limit));
    if diff.differences.identical {
        outln!("identical");
    }
    if diff.a.unfinished || diff.b.unfinished {
        outln!("a generation is still being built (projector rebuild); compare again before a promotion");
    } else if !diff.reviewed {
        outln!("partial comparison; a promotion requires a complete one");
    }
}

pub(crate) fn topic_title(topic: DiffTopic) -> &'static str {
    match topic {
        DiffTopic::Securities => "securities come or go",
        DiffTopic::Statuses => "dividend statuses change",
        DiffTopic::Lists => "list memberships change",
        DiffTopic::Streaks => "streaks change, in years",
        DiffTopic::Yields => "yields change, in percent points",
        DiffTopic::Prices => "prices change, in percent",
    }
}

/// Prints a topic (a group of related metrics, such as yields) with up to `limit` of its largest changes.
pub(crate) fn print_topic(ranked: &TopicSummary, limit: usize) {
    outln!("\n{:>6}  {}", ranked.count, topic_title(ranked.topic));
    for finding in ranked.first.iter().take(limit) {
        let [a, b] = shorten_values(&finding.a, &finding.b);
        outln!("        {:<10} {}: {a} -> {b}", finding.symbol, finding.figure);
        finding.why.iter().for_each(|why| outln!("                   {why}"));
    }
    print_hidden_count(ranked.count, limit, "");
}

fn print_rows(table: &TableDiff, limit: usize) {
    if table.differing > 0 {
        let columns = table.columns.iter().map(|(name, count)| format!("{name} {count}"));
        let columns = columns.collect::<Vec<_>>().join(", ");
        outln!("\n{}", format!("{}: {columns}", table.table).trim_end_matches(": "));
    }
    table.rows.iter().take(limit).for_each(print_row);
    print_hidden_count(table.differing, limit, &format!(" in {}", table.table));
}

fn print_row(difference: &RowDifference) {
    let key = [difference.owner(), difference.rest_of_key()].join(" ");
    outln!("{} {} {}", difference.change, difference.table, key.trim_end());
    if difference.change == ChangeKind::Changed {
        for changed in &difference.columns {
            let [a, b] = shorten_values(&changed.a, &changed.b);
            outln!("    {}: {a} -> {b}", changed.column);
        }
    }
    difference.why.iter().for_each(|why| outln!("    {why}"));
}

fn print_hidden_count(count: u64, shown: usize, place: &str) {
    let hidden = count.saturating_sub(shown as u64);
    if hidden > 0 {
        outln!("… and {hidden} more{place}; --limit N shows more, --csv FILE has all");
    }
}

/// Shortens both values of a differing column for the output. If both are JSON lists or objects, only their differing
/// elements remain. `--json` and `--csv` contain the complete values.
pub(crate) fn shorten_values(a: &CellValue, b: &CellValue) -> [String; 2] {
    match (list_elements(a), list_elements(b)) {
        (Some(of_a), Some(of_b)) => [shorten_list(&of_a, &of_b), shorten_list(&of_b, &of_a)],
        _ => [a, b].map(|cell| shorten_text(cell.to_string())),
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
    let differing: Vec<String> =
        own.iter().filter(|element| !other.contains(element)).cloned().map(shorten_text).collect();
    match differing.len() {
        0 => "nothing else".to_owned(),
        count if count > MAX_LIST_ELEMENTS => {
            format!("{} and {} more", differing[..MAX_LIST_ELEMENTS].join("; "), count - MAX_LIST_ELEMENTS)
        }
        _ => differing.join("; "),
    }
}

fn shorten_text(text: String) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
