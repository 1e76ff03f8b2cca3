//! The comparison as lines for people.

use telemetry::outln;

use super::cell::Cell;
use super::difference::{Change, Difference};
use super::found::Diff;
use super::ranking::{Ranked, Topic};
use super::tally::TableDiff;

/// Characters of a value that are shown.
const SHOWN: usize = 60;

/// Prints what was found, so many rows of each table.
pub(super) fn print(diff: &Diff, limit: usize) {
    outln!("generation {} against {}", diff.a.generation, diff.b.generation);
    diff.reasons.iter().for_each(|reason| outln!("  differs in {reason}"));
    outln!("table         rows        rows        differing");
    for table in &diff.tables {
        outln!("{:<13} {:<11} {:<11} {}", table.table, table.rows_a, table.rows_b, table.differing);
    }
    diff.ranked.iter().for_each(|ranked| topic(ranked, limit));
    diff.tables.iter().for_each(|table| rows(table, limit));
    if diff.identical {
        outln!("identical");
    }
    if diff.a.unfinished || diff.b.unfinished {
        outln!(
            "a generation is still being built (projector rebuild): a promotion asks for a comparison after that"
        );
    } else if !diff.reviewed {
        outln!("a part was compared: a promotion still asks for the whole");
    }
}

/// A topic's heading.
pub(super) fn title(topic: Topic) -> &'static str {
    match topic {
        Topic::Securities => "securities come or go",
        Topic::Statuses => "dividend statuses change",
        Topic::Lists => "list memberships change",
        Topic::Streaks => "streaks change, in years",
        Topic::Yields => "yields change, in percent points",
    }
}

fn topic(ranked: &Ranked, limit: usize) {
    outln!("\n{:>6}  {}", ranked.count, title(ranked.topic));
    for finding in ranked.first.iter().take(limit) {
        let (a, b) = (short(&finding.a), short(&finding.b));
        outln!("        {:<10} {}: {a} -> {b}", finding.symbol, finding.figure);
        finding.why.iter().for_each(|why| outln!("                   {why}"));
    }
    more(ranked.count, limit, "");
}

fn rows(table: &TableDiff, limit: usize) {
    if table.differing > 0 {
        let columns = table.columns.iter().map(|(name, count)| format!("{name} {count}"));
        outln!("\n{}: {}", table.table, columns.collect::<Vec<_>>().join(", "));
    }
    table.rows.iter().take(limit).for_each(row);
    more(table.differing, limit, &format!(" in {}", table.table));
}

fn row(difference: &Difference) {
    let key = [difference.owner(), difference.rest_of_key()].join(" ");
    outln!("{} {} {}", difference.change, difference.table, key.trim_end());
    if difference.change == Change::Changed {
        for changed in &difference.columns {
            outln!("    {}: {} -> {}", changed.column, short(&changed.a), short(&changed.b));
        }
    }
    difference.why.iter().for_each(|why| outln!("    {why}"));
}

fn more(count: u64, shown: usize, place: &str) {
    let hidden = count.saturating_sub(shown as u64);
    if hidden > 0 {
        outln!("… and {hidden} more{place}; --limit N shows more, --csv FILE has all");
    }
}

/// A value in few characters; long ones are JSON, which --json and --csv show whole.
pub(super) fn short(cell: &Cell) -> String {
    let text = cell.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
