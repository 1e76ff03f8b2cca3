//! `/quality`: quality of the data of all securities: coverage, quarantined rows by feed and reason, and flags.

use axum::response::Response;
use chrono::NaiveDate;
use maud::{Markup, html};
use tokio_postgres::{Error, Row};

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::flag_words::describe_flag;
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::values::{humanize, render_date};
use crate::dashboard::view::layout::{Section, format_count, format_grouped};
use crate::dashboard::view::table::{Number, Text, data_table, stacked_table};
use crate::read::lookup::run_query;
use crate::read::{QueryError, ServedGeneration};

const COVERAGE: &str = include_str!("../../../queries/quality/coverage.sql");
const FEEDS: &str = include_str!("../../../queries/quality/feeds.sql");
const HELD_ROWS: &str = include_str!("../../../queries/quality/held_rows.sql");
const FLAGS: &str = include_str!("../../../queries/quality/flags.sql");
/// Counts of the coverage query: column name and title.
const COUNTS: [(&str, &str); 7] = [
    ("active", "Active securities"),
    ("priced", "with a price"),
    ("stale", "with a price older than 5 sessions"),
    ("payers", "that pay dividends"),
    ("unknown_dividends", "without a source of dividends"),
    ("yielding", "with a yield"),
    ("delisted", "Delisted securities"),
];

pub(crate) async fn show_quality(reader: MarketReader) -> Response {
    let reader = &reader;
    reader
        .respond("/quality".to_owned(), async |_| {
            let generation = reader.app.projection.pin()?;
            let body = read(&generation).await?;
            Ok(PageContent {
                title: "Quality of the data".to_owned(),
                description: "Coverage, quarantined rows by reason, and conflicts between sources."
                    .to_owned(),
                canonical: "/quality".to_owned(),
                section: Section::Quality,
                body,
            })
        })
        .await
}

async fn read(generation: &ServedGeneration) -> Result<Markup, QueryError> {
    let coverage = run_query(generation, COVERAGE, &[]).await?;
    let feeds = run_query(generation, FEEDS, &[]).await?;
    let held = run_query(generation, HELD_ROWS, &[]).await?;
    let flags = run_query(generation, FLAGS, &[]).await?;
    let as_of = generation.version().as_of;
    Ok(html! {
        h1 { "Quality of the data" }
        p.lead { "What is loaded, what no figure uses, and what is unusual." }
        section.panel.block aria-labelledby="coverage" {
            h2 id="coverage" { "Coverage" }
            dl.facts {
                div { dt { "Newest session" } dd { @if let Some(day) = as_of { (render_date(&day.to_string())) } @else { "none" } } }
                @for row in &coverage { @for (column, title) in COUNTS { div { dt { (title) } dd { (count(row, column)?) } } } }
            }
        }
        section.panel.block aria-labelledby="feeds" { h2 id="feeds" { "Dividends by feed" } (feed_table(&feeds)?) }
        section.panel.block aria-labelledby="held" { h2 id="held" { "Rows that no figure uses" } (held_table(&held)?) }
        section.panel.block aria-labelledby="flags" { h2 id="flags" { "Unusual securities" } (flag_list(&flags)?) }
        p.hint { "Operators run " code { "projector audit" } ", which names every case." }
    })
}

fn count(row: &Row, column: &str) -> Result<String, Error> {
    Ok(format_grouped(row.try_get(column)?))
}

fn link(row: &Row) -> Result<Markup, Error> {
    let symbol: &str = row.try_get("example")?;
    Ok(html! { a href={ "/s/" (encode(symbol)) } { (symbol) } })
}

fn feed_table(rows: &[Row]) -> Result<Markup, Error> {
    Ok(html! {
        (data_table("Table: dividends by feed", &[Text("Feed"), Number("Records"), Number("Securities"), Text("Newest ex-date")], html! {
            @for row in rows {
                tr {
                    th scope="row" { (row.try_get::<_, &str>("source")?) }
                    td.number { (count(row, "rows")?) } td.number { (count(row, "securities")?) }
                    td { (render_date(&row.try_get::<_, NaiveDate>("newest")?.to_string())) }
                }
            }
        }))
    })
}

fn held_table(rows: &[Row]) -> Result<Markup, Error> {
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            (stacked_table("Table: rows that no figure uses", &[Text("Reason"), Text("Kind"), Text("Feed"), Number("Rows"), Number("Securities"), Text("Example")], html! {
                @for row in rows {
                    tr {
                        th scope="row" { (humanize(row.try_get("reason")?)) }
                        td data-label="Kind" { (row.try_get::<_, &str>("kind")?) }
                        td data-label="Feed" { (row.try_get::<_, &str>("source")?) }
                        td.number data-label="Rows" { (count(row, "rows")?) }
                        td.number data-label="Securities" { (count(row, "securities")?) }
                        td data-label="Example" { (link(row)?) }
                    }
                }
            }))
        }
    })
}

fn flag_list(rows: &[Row]) -> Result<Markup, Error> {
    Ok(html! {
        @if rows.is_empty() { p { "None." } }
        dl.words {
            @for row in rows {
                div { dt { code { (row.try_get::<_, &str>("flag")?) } " · " (format_count(row.try_get("securities")?, "security", "securities")) ", such as " (link(row)?) } dd { (describe_flag(row.try_get("flag")?)) } }
            }
        }
    })
}
