//! `/s/{symbol}/why/{figure}`: explanation of one figure, with its rule, its formula and the rows it is computed from.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult, encode};
use crate::dashboard::market::block::Block;
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::security::figures::Figure;
use crate::dashboard::market::values::{Unit, humanize, render_value, rows_of, str_of};
use crate::dashboard::view::layout::Section;
use crate::dashboard::view::table::{Number, Text, stacked_table};

pub(crate) async fn show_explanation(
    reader: MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    let Ok(Path((symbol, figure))) = path else {
        return reader.respond_error(MarketError::NotFound("Nothing is at this address".to_owned())).await;
    };
    let Some(figure) = Figure::find(&figure) else {
        return reader.respond_error(MarketError::NotFound("No figure has this name".to_owned())).await;
    };
    let target = format!("/s/{}/why/{}", encode(&symbol), figure.name);
    reader.respond(target, |calls| explain(calls, &symbol, figure)).await
}

async fn explain(calls: ApiCalls, symbol: &str, figure: &'static Figure) -> MarketResult<PageContent> {
    let Figure { name, title, .. } = figure;
    let call = format!("/v1/stocks/{}/metrics?explain=true&fields={name}", encode(symbol));
    let metrics = calls.json(&format!("/v1/stocks/{}/metrics", encode(symbol))).await?;
    let explained = match calls.json(&call).await {
        Ok(mut answer) => Some(answer["data"]["explanation"].take()),
        Err(MarketError::NotInPlan(_)) => None,
        Err(error) => return Err(error),
    };
    let canonical = str_of(&metrics["data"]["symbol"]);
    if canonical != symbol {
        return Err(MarketError::Redirect(format!("/s/{}/why/{name}", encode(canonical))));
    }
    let derivation =
        explained.as_ref().map(|explanation| derivation(&explanation["metrics"][0], explanation));
    let body = html! {
        p { a href={ "/s/" (encode(symbol)) } { "← " (symbol) } }
        h1 { (title) " of " (symbol) }
        p.figure { strong { (figure.render(&metrics["data"])) } }
        @match derivation {
            Some(body) => (Block { id: "why", title: "How this figure is computed", call: &call, csv: "", body }.render()),
            None => p.hint { "The formula and the rows behind this figure are part of a " a href="/plans" { "higher plan" } "." },
        }
    };
    Ok(PageContent {
        title: format!("{title} of {symbol}"),
        description: String::new(),
        canonical: String::new(),
        section: Section::Security,
        body,
    })
}

fn derivation(entry: &Value, explanation: &Value) -> Markup {
    let observations = rows_of(&entry["observations"]);
    html! {
        @if entry.is_null() { p { "This figure is read from a feed and needs no rule." } } @else {
            dl {
                div { dt { "Rule" } dd { (str_of(&entry["rule"])) } }
                div { dt { "Formula" } dd.formula { (str_of(&entry["formula"])) } }
                div { dt { "Rounding" } dd { (str_of(&entry["rounding"])) } }
                div { dt { "As of" } dd { (render_value(&explanation["as_of"], Unit::Date)) } }
                div { dt { "Method" } dd { (str_of(&explanation["method_version"])) } }
            }
            @if !observations.is_empty() { (rows(observations)) }
            @if let Some(older) = entry["older_observations"].as_i64().filter(|older| *older > 0) {
                p.hint { (older) " older rows are not listed; a plan with a longer history lists them." }
            }
        }
    }
}

/// Table of the data rows from which a figure was computed, for example the dividends of a year. Each data row is shown
/// with the feed, the file and the line from which it was read.
fn rows(observations: &[Value]) -> Markup {
    html! {
        h3 { "Rows behind this figure" }
        (stacked_table("Table: rows behind the figure", &[Text("Row"), Text("Date"), Number("Value"), Text("Use"), Text("Feed and line")], html! {
            @for row in observations {
                tr {
                    th scope="row" { (humanize(str_of(&row["kind"]))) }
                    td data-label="Date" { (render_value(&row["date"], Unit::Date)) }
                    td.number data-label="Value" { (render_value(&row["amount"], Unit::Money(str_of(&row["currency"])))) }
                    td.words data-label="Use" { (humanize(str_of(&row["outcome"]))) @if !str_of(&row["reason"]).is_empty() { ": " (str_of(&row["reason"])) } }
                    td data-label="Feed and line" { code { (str_of(&row["source"])) } @if !str_of(&row["file"]).is_empty() { ", " (str_of(&row["file"])) } @if row["line"].as_i64().is_some_and(|line| line > 0) { ", line " (row["line"]) } }
                }
            }
        }))
    }
}
