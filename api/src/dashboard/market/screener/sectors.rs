//! `/sectors` and `/sectors/{sector}`: statistics and top payers of the sectors.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::{ApiCalls, MarketError, encode};
use crate::dashboard::market::block::Block;
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::screener::table::render_table;
use crate::dashboard::market::values::{Unit, render_value, str_of};
use crate::dashboard::view::layout::Section;
use crate::dashboard::view::table::{Heading, stacked_table};

/// Figures of a sector: JSON field, title, and true if the value is a percentage.
const FIGURES: [(&str, &str, bool); 8] = [
    ("stock_count", "Stocks", false),
    ("payer_count", "Payers", false),
    ("median_yield", "Median yield", true),
    ("weighted_yield", "Weighted yield", true),
    ("median_payout_ratio", "Median payout", true),
    ("median_growth_5y", "Growth, 5 y", true),
    ("median_pe", "Median P/E", false),
    ("ex_dates_next_30d", "Next ex-dates", false),
];

pub(crate) async fn show_sectors(reader: MarketReader) -> Response {
    reader.respond("/sectors".to_owned(), list).await
}

pub(crate) async fn show_sector(reader: MarketReader, path: Result<Path<String>, PathRejection>) -> Response {
    let Ok(Path(sector)) = path else {
        return reader.respond_error(MarketError::NotFound("Nothing is at this address".to_owned())).await;
    };
    reader.respond(format!("/sectors/{}", encode(&sector)), |calls| one(calls, sector.clone())).await
}

async fn list(calls: ApiCalls) -> Result<PageContent, MarketError> {
    let call = "/v1/sectors";
    let answer = calls.json(call).await?;
    let rows = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let body = html! {
        h1 { "Sectors" }
        (Block { id: "sectors", title: "All sectors", call, csv: "", body: sectors_table(rows) }.render())
    };
    Ok(content("Dividends by sector".to_owned(), "/sectors".to_owned(), body))
}

async fn one(calls: ApiCalls, sector: String) -> Result<PageContent, MarketError> {
    let call = format!("/v1/sectors/{}?limit=25", encode(&sector));
    let answer = calls.json(&call).await?;
    let data = &answer["data"];
    let payers = data["top_payers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = str_of(&data["sector"]);
    let figures = html! {
        dl.facts { @for (field, title, is_percent) in FIGURES { div { dt { (title) } dd { (figure(&data[field], is_percent)) } } } }
    };
    let body = html! {
        p { a href="/sectors" { "← All sectors" } }
        h1 { (name) }
        (Block { id: "sector", title: "Figures", call: &call, csv: "", body: figures }.render())
        (Block { id: "payers", title: "Top payers", call: &call, csv: "", body: render_table(payers, |_, title| html! { (title) }) }.render())
        p { a href={ "/screener?preset=all&sector=" (encode(name)) } { "Screen this sector" } }
    };
    Ok(content(format!("Dividends of {name}"), format!("/sectors/{}", encode(str_of(&data["slug"]))), body))
}

fn content(title: String, canonical: String, body: Markup) -> PageContent {
    let description = "Yield, payout, growth and top payers by sector.".to_owned();
    PageContent { title, description, canonical, section: Section::Sectors, body }
}

fn figure(value: &Value, is_percent: bool) -> Markup {
    render_value(value, if is_percent { Unit::Percent } else { Unit::Plain })
}

fn sectors_table(rows: &[Value]) -> Markup {
    let figures = FIGURES.map(|(_, title, _)| Heading::Number(title));
    let headings = [[Heading::Text("Sector")].as_slice(), &figures].concat();
    let rows = html! {
        @for row in rows {
            tr {
                th scope="row" { a href={ "/sectors/" (encode(str_of(&row["slug"]))) } { (str_of(&row["sector"])) } }
                @for (field, title, is_percent) in FIGURES { td.number data-label=(title) { (figure(&row[field], is_percent)) } }
            }
        }
    };
    stacked_table("Table: sectors", &headings, rows)
}
