//! Calls a day as a picture, with the same numbers in a table beside it.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use maud::{Markup, html};

use super::layout::{counted, grouped};
use crate::account::statistics::{OfDay, Outcome};

const HEIGHT: i64 = 160;
/// Width of a day's bar and the space after it.
const STEP: i64 = 24;
const BAR: i64 = 16;

/// A day's calls: answered, refused by the client's own mistake or plan, refused by a limit, failed.
type Counts = [i64; 4];
const KINDS: [(&str, &str); 4] =
    [("answered", "Answered"), ("mistake", "Mistakes"), ("limit", "Over a limit"), ("failed", "Failed")];

fn kind(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Answered => 0,
        Outcome::NotFound | Outcome::Mistake | Outcome::Plan => 1,
        Outcome::Rate | Outcome::Quota => 2,
        Outcome::Failed => 3,
    }
}

/// The calls of so many days from a day on.
pub(crate) fn of_days(calls: &[OfDay], since: NaiveDate, days: i64) -> Markup {
    let mut by_day: BTreeMap<NaiveDate, Counts> =
        (0..days).map(|number| (since + TimeDelta::days(number), [0; 4])).collect();
    for row in calls {
        if let Some(counts) = by_day.get_mut(&row.day) {
            counts[kind(row.outcome)] += row.calls;
        }
    }
    let most = by_day.values().map(|counts| counts.iter().sum::<i64>()).max().unwrap_or(0).max(1);
    let all: i64 = by_day.values().flatten().sum();
    let label = format!(
        "{} in {}, at most {} a day",
        counted(all, "call", "calls"),
        counted(days, "day", "days"),
        grouped(most)
    );
    html! {
        figure.chart {
            ul.legend aria-hidden="true" { @for (class, title) in KINDS { li { span class={ "dot " (class) } {} (title) } } }
            svg role="img" aria-label=(label) viewBox={ "0 0 " (days * STEP) " " (HEIGHT + 1) } preserveAspectRatio="none" {
                line.axis x1="0" x2=(days * STEP) y1=(HEIGHT) y2=(HEIGHT) {}
                @for (number, counts) in (0..).zip(by_day.values()) { (bar(number * STEP + (STEP - BAR) / 2, counts, most)) }
            }
            div.ends aria-hidden="true" {
                span { (since.format("%-d %b")) }
                span { "at most " (grouped(most)) " a day" }
                span { ((since + TimeDelta::days(days - 1)).format("%-d %b")) }
            }
        }
        details { summary { "The same as a table" } (table(&by_day)) }
    }
}

/// A day's kinds, stacked.
fn bar(x: i64, counts: &Counts, most: i64) -> Markup {
    let mut below = 0;
    let mut parts = Vec::new();
    for ((class, _), count) in KINDS.iter().zip(counts) {
        let (bottom, top) = (height(below, most), height(below + count, most));
        // What was counted is seen, however little it is.
        let tall = if *count > 0 { (top - bottom).max(2) } else { 0 };
        below += count;
        if tall > 0 {
            parts.push((class, HEIGHT - bottom - tall, tall));
        }
    }
    html! { @for (class, y, tall) in parts { rect class=(class) x=(x) y=(y) width=(BAR) height=(tall) {} } }
}

fn height(calls: i64, most: i64) -> i64 {
    calls * (HEIGHT - 8) / most
}

fn table(by_day: &BTreeMap<NaiveDate, Counts>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Calls a day" {
            table {
                thead { tr { th scope="col" { "Day (UTC)" } @for (_, title) in KINDS { th.number scope="col" { (title) } } } }
                tbody {
                    @for (day, counts) in by_day.iter().rev() {
                        tr { th scope="row" { (day) } @for count in counts { td.number { (grouped(*count)) } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stack_to_the_height_and_small_ones_are_seen() {
        let drawn = bar(4, &[99_999, 1, 0, 0], 100_000).into_string();
        assert!(drawn.contains("height=\"151\"") && drawn.contains("height=\"2\""), "{drawn}");
    }
}
