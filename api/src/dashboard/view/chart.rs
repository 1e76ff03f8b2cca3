//! Bar chart of calls per day. A table shows the same counts.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use maud::{Markup, html};

use super::layout::{Heading, data_table};
use super::{format_count, format_grouped};
use crate::account::statistics::{CallOutcome, DailyCalls};

const HEIGHT: i64 = 160;
/// Width of one day in the chart, in pixels: a bar and the space around it.
const STEP: i64 = 24;
const BAR: i64 = 16;

/// Numbers of calls on one day, in the order of [`KINDS`].
type DayCounts = [i64; 4];
const KINDS: [(&str, &str); 4] =
    [("answered", "Answered"), ("mistake", "Mistakes"), ("limit", "Over a limit"), ("failed", "Failed")];

fn kind(outcome: CallOutcome) -> usize {
    match outcome {
        CallOutcome::Answered => 0,
        CallOutcome::NotFound | CallOutcome::ClientError | CallOutcome::Plan => 1,
        CallOutcome::Rate | CallOutcome::Quota => 2,
        CallOutcome::Failed => 3,
    }
}

/// Renders the chart of `days` days. The first day is `since`.
pub(crate) fn render_calls_chart(calls: &[DailyCalls], since: NaiveDate, days: i64) -> Markup {
    let mut by_day: BTreeMap<NaiveDate, DayCounts> =
        (0..days).map(|number| (since + TimeDelta::days(number), [0; 4])).collect();
    for row in calls {
        if let Some(counts) = by_day.get_mut(&row.day) {
            counts[kind(row.outcome)] += row.calls;
        }
    }
    let busiest = by_day.values().map(|counts| counts.iter().sum::<i64>()).max().unwrap_or(0);
    let top = top_of_axis(busiest);
    let all: i64 = by_day.values().flatten().sum();
    let label = format!(
        "{} in {}, {} on the busiest day",
        format_count(all, "call", "calls"),
        format_count(days, "day", "days"),
        format_grouped(busiest)
    );
    html! {
        figure.chart {
            ul.legend aria-hidden="true" { @for (class, title) in KINDS { li { span class={ "dot " (class) } {} (title) } } }
            p.unit aria-hidden="true" { "Calls a day" }
            div.plot {
                ol.scale aria-hidden="true" { @for value in [top, top / 2, 0] { li { (format_grouped(value)) } } }
                svg role="img" aria-label=(label) viewBox={ "0 0 " (days * STEP) " " (HEIGHT) } preserveAspectRatio="none" {
                    @for y in [0, HEIGHT / 2] { line.grid x1="0" x2=(days * STEP) y1=(y) y2=(y) {} }
                    @for (number, counts) in (0..).zip(by_day.values()) { (bar(number * STEP + (STEP - BAR) / 2, counts, top)) }
                    line.axis x1="0" x2=(days * STEP) y1=(HEIGHT) y2=(HEIGHT) {}
                }
                div.ends aria-hidden="true" {
                    @for day in [0, days / 2, days - 1] { span { ((since + TimeDelta::days(day)).format("%-d %b")) } }
                }
            }
        }
        details { summary { "The same as a table" } (table(&by_day)) }
    }
}

/// Stacked bar of a day.
fn bar(x: i64, counts: &DayCounts, top: i64) -> Markup {
    let mut below = 0;
    let mut parts = Vec::new();
    for ((class, _), count) in KINDS.iter().zip(counts) {
        let (bottom, upper) = (height(below, top), height(below + count, top));
        // At least 2 pixels, so that every nonzero count is visible.
        let tall = if *count > 0 { (upper - bottom).max(2) } else { 0 };
        below += count;
        if tall > 0 {
            parts.push((class, HEIGHT - bottom - tall, tall));
        }
    }
    html! { @for (class, y, tall) in parts { rect class=(class) x=(x) y=(y) width=(BAR) height=(tall) {} } }
}

fn height(calls: i64, top: i64) -> i64 {
    calls * HEIGHT / top
}

/// Upper end of the axis: `busiest`, rounded up to 2, 4, 6 or 10 times a power of ten. The middle of the axis is then a
/// whole number.
fn top_of_axis(busiest: i64) -> i64 {
    let mut power = 1;
    loop {
        if let Some(top) = [2, 4, 6, 10].into_iter().map(|step| step * power).find(|top| *top >= busiest) {
            return top;
        }
        power *= 10;
    }
}

fn table(by_day: &BTreeMap<NaiveDate, DayCounts>) -> Markup {
    let kinds = KINDS.map(|(_, title)| Heading::Number(title));
    let headings = [[Heading::Text("Day (UTC)")].as_slice(), &kinds].concat();
    let rows = html! {
        @for (day, counts) in by_day.iter().rev() {
            tr { th scope="row" { (day) } @for count in counts { td.number { (format_grouped(*count)) } } }
        }
    };
    data_table("Calls a day", &headings, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stack_to_the_height_and_small_ones_are_seen() {
        let drawn = bar(4, &[99_999, 1, 0, 0], 100_000).into_string();
        assert!(drawn.contains("height=\"159\"") && drawn.contains("height=\"2\""), "{drawn}");
    }

    #[test]
    fn the_axis_ends_at_a_round_number_with_a_whole_half() {
        for (busiest, top) in
            [(0, 2), (2, 2), (3, 4), (5, 6), (7, 10), (27, 40), (180, 200), (601, 1_000), (1_001, 2_000)]
        {
            assert_eq!(top_of_axis(busiest), top, "{busiest}");
        }
    }

    #[test]
    fn the_axis_has_its_unit_and_no_sentence_reads_like_a_limit() {
        let since = NaiveDate::from_ymd_opt(2024, 6, 1).expect("a date");
        let calls = [DailyCalls { day: since, outcome: CallOutcome::Answered, calls: 27 }];
        let drawn = render_calls_chart(&calls, since, 14).into_string();
        for part in ["Calls a day", "<li>40</li><li>20</li><li>0</li>", "27 on the busiest day"] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert!(!drawn.contains("at most"), "{drawn}");
    }
}
