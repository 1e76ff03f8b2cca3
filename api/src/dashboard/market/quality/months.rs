//! Block of `/quality` with the quality by month: charts of all sources together, and a table of each source.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::decimal::{ExactDecimal, PLACES_PERCENT, round};
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::dashboard::market::chart::{Close, PriceChart, PriceLine};
use crate::dashboard::market::values::{Unit, humanize, render_value, str_of};
use crate::dashboard::view::layout::{Number, Text, stacked_table};
use crate::dashboard::view::numbers::format_grouped;
use crate::dashboard::view::plot::{Bar, BarChart};

/// Counts of all sources in a month.
#[derive(Default)]
struct MonthTotals {
    corrected: i64,
    cancelled: i64,
    agreeing: i64,
    ex_dates: i64,
}

/// Renders the rows of `/v1/quality`, newest month first.
pub(super) fn render_months(rows: &[Value]) -> Markup {
    if rows.is_empty() {
        return html! { p { "No month is measured yet. A month is measured when the market date has passed into the next one." } };
    }
    let mut totals: BTreeMap<NaiveDate, MonthTotals> = BTreeMap::new();
    for row in rows {
        let Ok(month) = str_of(&row["month"]).parse() else { continue };
        let total = totals.entry(month).or_default();
        total.corrected += count(row, "corrected");
        total.cancelled += count(row, "cancelled");
        total.agreeing += count(row, "agreeing");
        total.ex_dates += count(row, "ex_dates");
    }
    html! {
        (render_corrections(&totals))
        @if let Some(chart) = render_agreement(&totals) { (chart) }
        (render_table(rows))
    }
}

fn count(row: &Value, name: &str) -> i64 {
    row[name].as_i64().unwrap_or_default()
}

/// Percentage of agreeing ex-dates; `None` without ex-dates.
fn percent(agreeing: i64, ex_dates: i64) -> Option<Decimal> {
    let share = (Decimal::from(agreeing) * Decimal::ONE_HUNDRED).checked_div(Decimal::from(ex_dates))?;
    Some(round(share, PLACES_PERCENT))
}

fn render_corrections(totals: &BTreeMap<NaiveDate, MonthTotals>) -> Markup {
    let bars: Vec<Bar> = totals
        .iter()
        .map(|(month, total)| Bar {
            label: month.format("%b %y").to_string(),
            solid: total.corrected.into(),
            light: total.cancelled.into(),
        })
        .collect();
    let label = format!("Dividends corrected or cancelled after publication, in {} months", bars.len());
    let note = "corrected or cancelled after publication";
    BarChart { solid: "Corrected", light: "Cancelled", unit: "dividends", note, label: &label, bars: &bars }
        .render()
}

/// Renders the agreement with adjusted closes; `None` without two months.
fn render_agreement(totals: &BTreeMap<NaiveDate, MonthTotals>) -> Option<Markup> {
    let share = |(month, total): (&NaiveDate, &MonthTotals)| {
        let close = ExactDecimal(percent(total.agreeing, total.ex_dates)?);
        Some(Close { date: *month, close })
    };
    let title = "Ex-dates that agree with adjusted closes";
    let lines = vec![PriceLine { name: title.to_owned(), closes: totals.iter().filter_map(share).collect() }];
    PriceChart { title, currency: "%", lines, ex_dates: Vec::new(), splits: Vec::new() }.render()
}

fn render_table(rows: &[Value]) -> Markup {
    let headings = [
        Text("Month"),
        Text("Source"),
        Number("Rows"),
        Text("Coverage"),
        Number("Agreement"),
        Number("Corrected"),
        Number("Cancelled"),
        Number("Median lag"),
        Number("95 % lag"),
    ];
    let days = |row: &Value, name: &str| {
        html! { @if row[name].is_null() { "–" } @else { (render_value(&row[name], Unit::Plain)) " days" } }
    };
    stacked_table(
        "Table: quality by month and source",
        &headings,
        html! {
            @for row in rows {
                tr {
                    th scope="row" { (str_of(&row["month"]).get(..7).unwrap_or_default()) }
                    td data-label="Source" { (str_of(&row["source"])) }
                    td.number data-label="Rows" { (format_grouped(count(row, "rows"))) }
                    td data-label="Coverage" { (render_coverage(&row["coverage"])) }
                    td.number data-label="Agreement" {
                        @match percent(count(row, "agreeing"), count(row, "ex_dates")) { Some(percent) => { (percent) " %" }, None => "–" }
                    }
                    td.number data-label="Corrected" { (count(row, "corrected")) }
                    td.number data-label="Cancelled" { (count(row, "cancelled")) }
                    td.number data-label="Median lag" { (days(row, "lag_median_days")) }
                    td.number data-label="95 % lag" { (days(row, "lag_p95_days")) }
                }
            }
        },
    )
}

/// Number of covered active securities by type, for example `stock 3 of 4`.
fn render_coverage(coverage: &Value) -> Markup {
    let types = coverage.as_object().into_iter().flatten();
    let types =
        types.map(|(of, counts)| format!("{} {} of {}", humanize(of), counts["covered"], counts["active"]));
    html! { (types.collect::<Vec<_>>().join(", ")) }
}
