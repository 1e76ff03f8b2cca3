//! Text output of a comparison.

use telemetry::outln;

use super::accumulator::TableDiff;
use super::cell::CellValue;
use super::difference::{ChangeKind, RowDifference};
use super::ranking::{DiffTopic, TopicSummary};
use super::result::GenerationDiff;

/// Maximum length of a value in the output, in characters.
const MAX_VALUE_CHARACTERS: usize = 60;

/// Prints a comparison with up to `limit` rows per table.
pub(super) fn print_diff(diff: &GenerationDiff, limit: usize) {
    outln!("generation {} against {}", diff.a.generation, diff.b.generation);
    diff.reasons.iter().for_each(|reason| outln!("  differs in {reason}"));
    outln!("table         rows        rows        differing");
    for table in &diff.tables {
        outln!("{:<13} {:<11} {:<11} {}", table.table, table.rows_a, table.rows_b, table.differing);
    }
    diff.ranked.iter().for_each(|ranked| print_topic(ranked, limit));
    diff.tables.iter().for_each(|table| print_rows(table, limit));
    if diff.identical {
        outln!("identical");
    }
    if diff.a.unfinished || diff.b.unfinished {
        outln!("a generation is still being built (projector rebuild); compare again before a promotion");
    } else if !diff.reviewed {
        outln!("partial comparison; a promotion requires a complete one");
    }
}

/// Heading of a topic.
pub(super) fn topic_title(topic: DiffTopic) -> &'static str {
    match topic {
        DiffTopic::Securities => "securities come or go",
        DiffTopic::Statuses => "dividend statuses change",
        DiffTopic::Lists => "list memberships change",
        DiffTopic::Streaks => "streaks change, in years",
        DiffTopic::Yields => "yields change, in percent points",
    }
}

fn print_topic(ranked: &TopicSummary, limit: usize) {
    outln!("\n{:>6}  {}", ranked.count, topic_title(ranked.topic));
    for finding in ranked.first.iter().take(limit) {
        let (a, b) = (shorten_value(&finding.a), shorten_value(&finding.b));
        outln!("        {:<10} {}: {a} -> {b}", finding.symbol, finding.figure);
        finding.why.iter().for_each(|why| outln!("                   {why}"));
    }
    print_hidden_count(ranked.count, limit, "");
}

fn print_rows(table: &TableDiff, limit: usize) {
    if table.differing > 0 {
        let columns = table.columns.iter().map(|(name, count)| format!("{name} {count}"));
        outln!("\n{}: {}", table.table, columns.collect::<Vec<_>>().join(", "));
    }
    table.rows.iter().take(limit).for_each(print_row);
    print_hidden_count(table.differing, limit, &format!(" in {}", table.table));
}

fn print_row(difference: &RowDifference) {
    let key = [difference.owner(), difference.rest_of_key()].join(" ");
    outln!("{} {} {}", difference.change, difference.table, key.trim_end());
    if difference.change == ChangeKind::Changed {
        for changed in &difference.columns {
            outln!("    {}: {} -> {}", changed.column, shorten_value(&changed.a), shorten_value(&changed.b));
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

/// Shortens long values, which are JSON. `--json` and `--csv` show the full values.
pub(super) fn shorten_value(cell: &CellValue) -> String {
    let text = cell.to_string();
    match text.char_indices().nth(MAX_VALUE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
