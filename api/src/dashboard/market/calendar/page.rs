//! Calendar page: dividends of one week or month, with CSV file and subscription URL.

use axum::response::Response;
use chrono::NaiveDate;
use maud::{Markup, html};
use serde_json::Value;

use crate::auth::tier::years_before;
use crate::dashboard::market::api_calls::{ApiCalls, MarketResult};
use crate::dashboard::market::block::{Block, Choice, render_choices};
use crate::dashboard::market::calendar::days::render_days;
use crate::dashboard::market::calendar::filters::{CalendarChoice, KINDS};
use crate::dashboard::market::calendar::subscription::calendar_url;
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::values::rows_of;
use crate::dashboard::view::layout::Section;

pub(crate) async fn show_calendar(reader: MarketReader) -> Response {
    let (choice, today) = choice_of(&reader);
    reader.respond(choice.address(), |calls| build(calls, choice.clone(), today)).await
}

/// Responds with the rows of the calendar as CSV.
pub(crate) async fn show_csv(reader: MarketReader) -> Response {
    let (choice, _) = choice_of(&reader);
    reader.respond_csv(&choice.call(), "calendar.csv", "the filters cannot be read").await
}

fn choice_of(reader: &MarketReader) -> (CalendarChoice, NaiveDate) {
    let today = reader.app.today();
    let floor = years_before(today, reader.depth_years());
    (CalendarChoice::read(&reader.parameters(), today, floor), today)
}

async fn build(calls: ApiCalls, choice: CalendarChoice, today: NaiveDate) -> MarketResult<PageContent> {
    let call = choice.call();
    let answer = calls.json(&call).await?;
    let rows = rows_of(&answer["data"]);
    let csv = choice.address().replacen("/calendar?", "/calendar.csv?", 1);
    let body = html! {
        h1 { "Dividend calendar" }
        (choices(&choice))
        (filters(&choice))
        (Block { id: "days", title: &title(&choice), call: &call, csv: &csv, body: days(&choice, rows, &answer, today) }.render())
        (subscribe(&choice))
    };
    Ok(PageContent {
        title: format!("Dividend calendar: {}", title(&choice)),
        description: "Ex-dates and dividend payments by day, declared and estimated.".to_owned(),
        canonical: "/calendar".to_owned(),
        section: Section::Calendar,
        body,
    })
}

fn title(choice: &CalendarChoice) -> String {
    match choice.is_week {
        true => format!("{} to {}", choice.first.format("%-d %b"), choice.last().format("%-d %b %Y")),
        false => choice.first.format("%B %Y").to_string(),
    }
}

fn days(choice: &CalendarChoice, rows: &[Value], answer: &Value, today: NaiveDate) -> Markup {
    html! {
        @if rows.is_empty() { p { "No dividend is declared or expected in these days." } }
        (render_days(choice, rows, today))
        @if answer["meta"]["has_more"] == true { p.hint { "These are the first 500. Choose a week, or set a filter, to see the others." } }
    }
}

fn choices(choice: &CalendarChoice) -> Markup {
    let pick = |title, is_current, choice: CalendarChoice| {
        Choice::of_every_plan(title, choice.address(), is_current)
    };
    let kinds = KINDS.map(|(kind, title, _)| pick(title, kind == choice.kind, choice.of_kind(kind)));
    let spans = [("Month", false), ("Week", true)];
    let spans = spans.map(|(title, is_week)| pick(title, is_week == choice.is_week, choice.in_span(is_week)));
    let moves = [("← Earlier", false), ("Later →", true)];
    let moves = moves.map(|(title, is_later)| Choice {
        title,
        address: choice.moved(is_later).map(|choice| choice.address()),
        is_current: false,
        hint: "A plan with a longer history includes this",
    });
    html! { div.heading { (render_choices("Days", &kinds)) (render_choices("Span", &spans)) (render_choices("Move", &moves)) } }
}

fn filters(choice: &CalendarChoice) -> Markup {
    html! {
        details open[!choice.filters.is_empty()] { summary { "Filter" }
            form.fields action="/calendar" method="get" {
                input type="hidden" name="days" value=(choice.kind);
                input type="hidden" name="span" value=(if choice.is_week { "week" } else { "month" });
                input type="hidden" name="from" value=(choice.first);
                div.field { label for="symbols" { "Symbols" } input id="symbols" name="symbols" value=(choice.filter("symbols")) placeholder="KO,PEP"; }
                div.field { label for="sector" { "Sector" } input id="sector" name="sector" value=(choice.filter("sector")); }
                div.field { label for="min_yield" { "Minimum yield, %" } input id="min_yield" name="min_yield" inputmode="decimal" value=(choice.filter("min_yield")); }
                p.actions { button.small type="submit" { "Show" } a.button.small.second href="/calendar" { "Clear" } }
            }
        }
    }
}

/// Renders the URL of the iCalendar file for the chosen symbols. Calendar programs can subscribe to this URL.
fn subscribe(choice: &CalendarChoice) -> Markup {
    let symbols = choice.filter("symbols");
    html! {
        section.panel aria-labelledby="subscribe" {
            h2 id="subscribe" { "In your calendar" }
            @if symbols.is_empty() { p { "Filter by symbols to get an iCalendar address with their dates." } }
            @else { p { a href=(calendar_url(symbols)) { "iCalendar of " (symbols) } ": add this address to your calendar program. The program then gets every change." } }
            p.hint { "With an account, " code { "/feed/YOUR-KEY/calendar.ics?symbols=…" } " works in programs that cannot sign in. Create a key for this address; deleting the key ends it." }
        }
    }
}
