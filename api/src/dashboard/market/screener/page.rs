//! Screener page: securities of a preset, with filters, order and CSV file.

use axum::response::Response;
use maud::{Markup, html};

use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult};
use crate::dashboard::market::block::{Block, Choice, render_choices};
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::screener::choice::{FILTERS, PRESETS, ScreenChoice};
use crate::dashboard::market::screener::table::render_table;
use crate::dashboard::market::values::{rows_of, str_of};
use crate::dashboard::view::layout::{Section, error_message, to_sentence};

pub(crate) async fn show_screener(reader: MarketReader) -> Response {
    let choice = ScreenChoice::read(&reader.parameters());
    reader.respond(choice.address(), |calls| build(calls, choice.clone())).await
}

/// Responds with the rows of the page as CSV.
pub(crate) async fn show_csv(reader: MarketReader) -> Response {
    let choice = ScreenChoice::read(&reader.parameters());
    reader.respond_csv(&choice.call(), "screener.csv", "the filters cannot be read").await
}

async fn build(calls: ApiCalls, choice: ScreenChoice) -> MarketResult<PageContent> {
    let call = choice.call();
    let (answer, mistake) = match calls.json(&call).await {
        Ok(answer) => (answer, None),
        Err(MarketError::Refused(mistake)) => (serde_json::Value::Null, Some(to_sentence(&mistake))),
        Err(error) => return Err(error),
    };
    let rows = rows_of(&answer["data"]);
    let csv = choice.address().replacen("/screener?", "/screener.csv?", 1);
    let next = str_of(&answer["meta"]["next_cursor"]);
    let found = html! {
        @if rows.is_empty() { p { "No security passes all filters." } }
        @else { (render_table(rows, |field, title| sort_link(&choice, field, title))) }
        @if !next.is_empty() { p { a.button.second.small href=(choice.at(next).address()) { "Next page" } } }
    };
    let body = html! {
        h1 { "Screener" }
        (presets(&choice))
        (error_message(mistake.as_deref()))
        (filters(&choice))
        @if mistake.is_none() { (Block { id: "found", title: "Securities", call: &call, csv: &csv, body: found }.render()) }
    };
    Ok(PageContent {
        title: "Dividend screener".to_owned(),
        description: "Stocks and funds by dividend yield, growth, payout and years of raises.".to_owned(),
        canonical: "/screener".to_owned(),
        section: Section::Screener,
        body,
    })
}

fn presets(choice: &ScreenChoice) -> Markup {
    let presets = PRESETS.map(|(preset, title, _)| {
        Choice::of_every_plan(title, choice.of_preset(preset).address(), preset == choice.preset)
    });
    render_choices("Presets", &presets)
}

fn filters(choice: &ScreenChoice) -> Markup {
    html! {
        details open[!choice.filters.is_empty()] { summary { "Filter" }
            form action="/screener" method="get" {
                input type="hidden" name="preset" value=(choice.preset);
                div.fields {
                    @for (name, title) in FILTERS {
                        div.field { label for=(name) { (title) } input id=(name) name=(name) value=(choice.filter(name)); }
                    }
                }
                p.actions { button.small type="submit" { "Show" } a.button.small.second href="/screener" { "Clear" } }
            }
        }
    }
}

/// Renders a column title as a link that sorts by the column. The first click sorts in descending order, the next one
/// in ascending order.
fn sort_link(choice: &ScreenChoice, field: &str, title: &str) -> Markup {
    let descending = format!("{field}.desc");
    let is_descending = choice.sort == descending;
    let sort = if is_descending { format!("{field}.asc") } else { descending };
    html! {
        a href=(choice.sorted_by(sort).address()) rel="nofollow" { (title) }
        @if is_descending { " ↓" } @else if choice.sort == format!("{field}.asc") { " ↑" }
    }
}
