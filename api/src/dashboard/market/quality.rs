//! `/quality`: quality of the data of all securities: coverage, quarantined rows by feed and reason, flags, quality by
//! month, and licences of the sources.
//!
//! Block of `/quality` with the quality by month: charts of all sources together, and a table of each source.

use std::collections::BTreeMap;

use axum::response::Response;
use chrono::NaiveDate;
use market::decimal::{ExactDecimal, PLACES_PERCENT, round};
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use super::api_calls::encode;
use super::block::Block;
use super::chart::{Close, PriceChart, PriceLine};
use super::reader::{MarketReader, PageContent};
use super::values::{Unit, describe_flag, humanize, render_date, render_value, rows_of, str_of};
use crate::auth::years_before;
use crate::dashboard::view::layout::{Number, Section, Text, Words, data_table, stacked_rows};
use crate::dashboard::view::markdown::render_inline;
use crate::dashboard::view::plot::{Bar, BarChart};
use crate::dashboard::view::{format_count, format_grouped};
use crate::read::memory_tables::{FeedCount, FlagCount, HeldRowCount, QualityTables};

/// API call for the sources with their licences.
const SOURCES: &str = "/v1/sources";
/// API call for the quality by month, of at most as many rows as the page shows.
const MONTHS: &str = "/v1/quality?limit=200";

pub(crate) async fn show_quality(reader: MarketReader) -> Response {
    let reader = &reader;
    reader
        .respond("/quality".to_owned(), async |calls| {
            let generation = reader.app.projection.pin()?;
            let tables = reader.app.memory_tables.quality(&generation).await?;
            let sources: Value = calls.data(SOURCES.to_owned()).await?;
            let months: Value = calls.data(MONTHS.to_owned()).await?;
            let first_day = years_before(reader.app.today(), reader.depth_years());
            Ok(PageContent {
                title: "Quality of the data".to_owned(),
                description: "Coverage, quarantined rows by reason, and conflicts between sources."
                    .to_owned(),
                canonical: "/quality".to_owned(),
                section: Section::Quality,
                body: html! {
                    (render(&tables, generation.version().as_of, first_day))
                    (Block { id: "months", title: "Quality by month", call: MONTHS, csv: "", body: render_months(rows_of(&months)) }.render())
                    (Block { id: "sources", title: "Sources and licences", call: SOURCES, csv: "", body: render_sources(rows_of(&sources)) }.render())
                    p.hint { "Operators run " code { "projector audit" } ", which names every case." }
                },
            })
        })
        .await
}

/// Renders the tables. Days before `first_day` are outside the history of the reader's plan.
fn render(tables: &QualityTables, as_of: Option<NaiveDate>, first_day: NaiveDate) -> Markup {
    let counts = &tables.coverage;
    let counts = [
        (counts.active, "Active securities"),
        (counts.priced, "with a price"),
        (counts.stale, "with a price older than 5 sessions"),
        (counts.payers, "that pay dividends"),
        (counts.unknown_dividends, "without a source of dividends"),
        (counts.yielding, "with a yield"),
        (counts.delisted, "Delisted securities"),
    ];
    html! {
        h1 { "Quality of the data" }
        p.lead { "Loaded data, rows that no figure uses, and unusual securities." }
        section.panel.block aria-labelledby="coverage" {
            h2 id="coverage" { "Coverage" }
            dl.facts {
                div { dt { "Newest session" } dd { @if let Some(day) = as_of { (render_date(&day.to_string())) } @else { "none" } } }
                @for (count, title) in counts { div { dt { (title) } dd { (format_grouped(count)) } } }
            }
        }
        section.panel.block aria-labelledby="feeds" { h2 id="feeds" { "Dividends by feed" } (feed_table(&tables.feeds, first_day)) }
        section.panel.block aria-labelledby="held" { h2 id="held" { "Rows that no figure uses" } (held_table(&tables.held_rows)) }
        section.panel.block aria-labelledby="flags" { h2 id="flags" { "Unusual securities" } (flag_list(&tables.flags)) }
    }
}

/// Renders sources with their licences.
pub(crate) fn render_sources(sources: &[Value]) -> Markup {
    html! {
        @if sources.is_empty() { p { "No rows are loaded." } } @else {
            (stacked_rows("Table: sources and licences", sources, &[
                (Text("Source"), &|source| html! { (str_of(&source["source"])) }),
                (Text("Rows"), &|source| html! { (rows_of(&source["kinds"]).iter().map(str_of).collect::<Vec<_>>().join(", ")) }),
                (Text("Licence"), &|source| {
                    let licence = source["licence"].as_str().unwrap_or("not stated");
                    html! { @match source["url"].as_str() { Some(url) => a href=(url) rel="license" { (licence) }, None => (licence) } }
                }),
                (Words("Attribution"), &|source| html! { (source["attribution"].as_str().unwrap_or("–")) }),
                (Text("Redistribution"), &|source| html! { @match source["redistribution"].as_bool() { Some(true) => "allowed", Some(false) => "not allowed", None => "–" } }),
            ]))
        }
    }
}

fn link(symbol: &str) -> Markup {
    html! { a href={ "/s/" (encode(symbol)) } { (symbol) } }
}

fn feed_table(feeds: &[FeedCount], first_day: NaiveDate) -> Markup {
    html! {
        (data_table("Table: dividends by feed", &[Text("Feed"), Number("Records"), Number("Securities"), Text("Newest ex-date")], html! {
            @for feed in feeds {
                tr {
                    th scope="row" { (feed.source) }
                    td.number { (format_grouped(feed.rows)) } td.number { (format_grouped(feed.securities)) }
                    td { @if feed.newest < first_day { "before the history of this plan" } @else { (render_date(&feed.newest.to_string())) } }
                }
            }
        }))
    }
}

fn held_table(rows: &[HeldRowCount]) -> Markup {
    html! {
        @if rows.is_empty() { p { "None." } } @else {
            (stacked_rows("Table: rows that no figure uses", rows, &[
                (Text("Reason"), &|row| html! { (humanize(&row.reason)) }),
                (Text("Kind"), &|row| html! { (row.kind) }),
                (Text("Feed"), &|row| html! { (row.source) }),
                (Number("Rows"), &|row| html! { (format_grouped(row.rows)) }),
                (Number("Securities"), &|row| html! { (format_grouped(row.securities)) }),
                (Text("Example"), &|row| link(&row.example)),
            ]))
        }
    }
}

fn flag_list(flags: &[FlagCount]) -> Markup {
    html! {
        @if flags.is_empty() { p { "None." } }
        dl.words {
            @for flag in flags {
                div { dt { code { (flag.flag) } " · " (format_count(flag.securities, "security", "securities")) ", such as " (link(&flag.example)) } dd { (render_inline(&describe_flag(&flag.flag))) } }
            }
        }
    }
}

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
        total.corrected += count_of(row, "corrected");
        total.cancelled += count_of(row, "cancelled");
        total.agreeing += count_of(row, "agreeing");
        total.ex_dates += count_of(row, "ex_dates");
    }
    html! {
        (render_corrections(&totals))
        @if let Some(chart) = render_agreement(&totals) { (chart) }
        (render_months_table(rows))
    }
}

fn count_of(row: &Value, name: &str) -> i64 {
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
    PriceChart { title, currency: "%", lines, ..PriceChart::default() }.render()
}

fn render_months_table(rows: &[Value]) -> Markup {
    let days = |row: &Value, name: &str| {
        html! { @if row[name].is_null() { "–" } @else { (render_value(&row[name], Unit::Plain)) " days" } }
    };
    let agreement = |row: &Value| percent(count_of(row, "agreeing"), count_of(row, "ex_dates"));
    html! {
        (stacked_rows("Table: quality by month and source", rows, &[
            (Text("Month"), &|row| html! { (str_of(&row["month"]).get(..7).unwrap_or_default()) }),
            (Text("Source"), &|row| html! { (str_of(&row["source"])) }),
            (Number("Rows"), &|row| html! { (format_grouped(count_of(row, "rows"))) }),
            (Text("Coverage"), &|row| render_coverage(&row["coverage"])),
            (Number("Agreement"), &|row| html! { @match agreement(row) { Some(percent) => { (percent) " %" }, None => "–" } }),
            (Number("Corrected"), &|row| html! { (count_of(row, "corrected")) }),
            (Number("Cancelled"), &|row| html! { (count_of(row, "cancelled")) }),
            (Number("Median lag"), &|row| days(row, "lag_median_days")),
            (Number("95 % lag"), &|row| days(row, "lag_p95_days")),
        ]))
    }
}

/// Number of covered active securities by type, for example `stock 3 of 4`.
fn render_coverage(coverage: &Value) -> Markup {
    let types = coverage.as_object().into_iter().flatten();
    let types =
        types.map(|(of, counts)| format!("{} {} of {}", humanize(of), counts["covered"], counts["active"]));
    html! { (types.collect::<Vec<_>>().join(", ")) }
}
