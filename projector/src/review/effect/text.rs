//! Text output of the effect of a load.

use market::row::Quarantined;
use telemetry::outln;

use super::result::{FlagChange, RunEffect};
use crate::review::diff::print_topic;

/// Prints the effect of a run. At most `limit` securities are printed per topic.
pub fn print_effect(effect: &RunEffect, limit: usize) {
    let found = &effect.found;
    outln!("effect on served figures of {}", effect.scope());
    if !effect.complete {
        outln!("the run is incomplete; ingest resume continues it");
    }
    if found.differences.identical {
        outln!("no served figure changed");
    }
    for replacement in &found.replaced {
        outln!("{}: {}; {}", replacement.sentence(), replacement.first.join(", "), replacement.reason);
        outln!("        → to keep {}: {}", replacement.replaced, replacement.keep);
    }
    for topic in &found.differences.ranked {
        print_topic(topic, limit);
    }
    if let Some(sentence) = found.quarantined.sentence() {
        outln!("\n{sentence}");
        for row in found.quarantined.first.iter().take(limit) {
            let Quarantined { symbol, reason, message, source, line, .. } = row;
            outln!("        {symbol:<10} {reason}: {message} (source {source}, line {line})");
        }
    }
    if !found.flags.is_empty() {
        outln!("\nflags of securities:");
    }
    for FlagChange { flag, added, removed, first } in &found.flags {
        outln!("    {flag:<28} {added} more, {removed} fewer  {}", first.join(", "));
    }
    let differing = found.differences.tables.iter().filter(|table| table.differing > 0);
    let differing: Vec<String> =
        differing.map(|table| format!("{} {}", table.table, table.differing)).collect();
    if !differing.is_empty() {
        outln!("\ndiffering rows: {}", differing.join(", "));
    }
}
