//! `/sectors` and `/sectors/{sector}`: statistics and top payers of the sectors.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketResult, encode};
use super::block::{Block, SortHeading};
use super::reader::{MarketReader, PageContent};
use super::screener::render_table;
use super::values::{Unit, render_value, rows_of, str_of};
use crate::dashboard::view::layout::{Section, list_table};

/// Figures of a sector, each with its JSON field, a title and a unit.
const FIGURES: [(&str, &str, Unit<'static>); 8] = [
    ("stock_count", "Stocks", Unit::Plain),
    ("payer_count", "Payers", Unit::Plain),
    ("median_yield", "Median yield", Unit::Percent),
    ("weighted_yield", "Weighted yield", Unit::Percent),
    ("median_payout_ratio", "Median payout", Unit::Percent),
    ("median_growth_5y", "Growth, 5 y", Unit::Percent),
    ("median_pe", "Median P/E", Unit::Ratio),
    ("ex_dates_next_30d", "Next ex-dates", Unit::Plain),
];

const DEFAULT_ORDER: &str = "sector.asc";

/// Path of the list of sectors in the order `sort`.
fn address(sort: &str) -> String {
    format!("/sectors?sort={}", encode(sort))
}

pub(crate) async fn show_sectors(reader: MarketReader) -> Response {
    let sort: String = reader.parameters().text("sort").chars().take(64).collect();
    let sort = if sort.is_empty() { DEFAULT_ORDER.to_owned() } else { sort };
    reader.respond(address(&sort), |calls| list(calls, sort.clone())).await
}

pub(crate) async fn show_sector(reader: MarketReader, path: Result<Path<String>, PathRejection>) -> Response {
    let result = async {
        let Path(sector) = path?;
        let target = format!("/sectors/{}", encode(&sector));
        Ok(reader.respond(target, |calls| one(calls, sector.clone())).await)
    }
    .await;
    reader.respond_with(result)
}

async fn list(calls: ApiCalls, sort: String) -> MarketResult<PageContent> {
    let call = format!("/v1/sectors?sort={}", encode(&sort));
    let answer = calls.json(&call).await?;
    let rows = rows_of(&answer["data"]);
    let body = html! {
        h1 { "Sectors" }
        (Block { id: "sectors", title: "All sectors", call: &call, csv: "", body: sectors_table(rows, &sort) }.render())
    };
    Ok(content("Dividends by sector".to_owned(), "/sectors".to_owned(), body))
}

async fn one(calls: ApiCalls, sector: String) -> MarketResult<PageContent> {
    let call = format!("/v1/sectors/{}?limit=25", encode(&sector));
    let answer = calls.json(&call).await?;
    let data = &answer["data"];
    let payers = rows_of(&data["top_payers"]);
    let name = str_of(&data["sector"]);
    let figures = html! {
        dl.facts { @for (field, title, unit) in FIGURES { div { dt { (title) } dd { (render_value(&data[field], unit)) } } } }
    };
    // The list has the order of the top payers. Its headings lead to the screener, which sorts all securities of the
    // sector.
    let screener = format!("/screener?preset=all&sector={}", encode(name));
    let heading = |heading: SortHeading<'_>| {
        heading.render("dividend_yield.desc", |sort| format!("{screener}&sort={}", encode(&sort)))
    };
    let body = html! {
        p { a href="/sectors" { "← All sectors" } }
        h1 { (name) }
        (Block { id: "sector", title: "Figures", call: &call, csv: "", body: figures }.render())
        (Block { id: "payers", title: "Top payers", call: &call, csv: "", body: render_table(payers, false, str_of(&data["currency"]), heading) }.render())
        p { a href=(screener) { "Screen this sector" } }
    };
    Ok(content(format!("Dividends of {name}"), format!("/sectors/{}", encode(str_of(&data["slug"]))), body))
}

fn content(title: String, canonical: String, body: Markup) -> PageContent {
    let description = "Yield, payout, growth and top payers by sector.".to_owned();
    PageContent { title, description, canonical, section: Section::Sectors, body }
}

fn sectors_table(rows: &[Value], sort: &str) -> Markup {
    let heading =
        |field, title, is_number| SortHeading { field, title, is_number }.render(sort, |sort| address(&sort));
    let head = html! {
        (heading("sector", "Sector", false))
        @for (field, title, _) in FIGURES { (heading(field, title, true)) }
    };
    let rows = html! {
        @for row in rows {
            tr {
                th.name scope="row" { a href={ "/sectors/" (encode(str_of(&row["slug"]))) } { (str_of(&row["sector"])) } }
                @for (field, title, unit) in FIGURES { td.number data-label=(title) { (render_value(&row[field], unit)) } }
            }
        }
    };
    list_table("Table: sectors", &head, rows)
}
