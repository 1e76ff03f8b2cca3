//! `/calendar`: ex-dates and payments by month or week, with filters, CSV file and iCalendar subscription.

use axum::response::Response;
use chrono::{Datelike, Days, Months, NaiveDate, Weekday};
use maud::{Markup, html};
use serde_json::Value;

use crate::auth::tier::years_before;
use crate::dashboard::form::Form;
use crate::dashboard::market::api_calls::{ApiCalls, MarketResult, encode};
use crate::dashboard::market::block::{Block, Choice, render_choices};
use crate::dashboard::market::calendar_events::Calendar;
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::values::{Unit, render_value, rows_of, str_of};
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

/// Maximum number of dividends per day in the month view. The week view shows all.
const SHOWN: usize = 5;

/// Renders the days of the chosen span. Weekend days without dividends are omitted.
fn render_days(choice: &CalendarChoice, rows: &[Value], today: NaiveDate) -> Markup {
    let days: Vec<NaiveDate> = choice.first.iter_days().take_while(|day| *day <= choice.last()).collect();
    let is_weekend = |day: &NaiveDate| matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
    html! {
        ol.days {
            @for day in days {
                @let events: Vec<&Value> = rows.iter().filter(|row| str_of(&row["event_date"]) == day.to_string()).collect();
                @if !events.is_empty() || !is_weekend(&day) {
                    li.today[day == today].empty[events.is_empty()] {
                        h3 { time datetime=(day) { (day.format("%a %-d %b")) } @if day == today { " " span.tag { "today" } } }
                        (render_events(&events, choice, day))
                    }
                }
            }
        }
    }
}

fn render_events(events: &[&Value], choice: &CalendarChoice, day: NaiveDate) -> Markup {
    let shown = if choice.is_week { events.len() } else { events.len().min(SHOWN) };
    let week = choice.week_of(day);
    html! {
        @if !events.is_empty() {
            ul { @for event in &events[..shown] { (render_event(event)) } }
            @if events.len() > shown { p { a href=(week.address()) { "and " (events.len() - shown) " more" } } }
        }
    }
}

fn render_event(event: &Value) -> Markup {
    let is_estimate = str_of(&event["amount_status"]) == "estimated";
    html! {
        li.estimate[is_estimate] {
            a href={ "/s/" (encode(str_of(&event["symbol"]))) } title=(str_of(&event["name"])) { (str_of(&event["symbol"])) } " "
            (render_value(&event["amount"], Unit::PerShare(str_of(&event["currency"]))))
            @if is_estimate { " " span.muted { "estimated" } }
        }
    }
}

/// Path of the iCalendar file for comma-separated symbols.
fn calendar_url(symbols: &str) -> String {
    format!("/calendar.ics?symbols={}", encode(symbols))
}

pub(crate) async fn show_file(reader: MarketReader) -> Response {
    let parameters = reader.parameters();
    let calendar = Calendar::Dividends(parameters.text("symbols"));
    match calendar.respond(&reader.app, &reader.calls(), &reader.origin, None).await {
        Ok(file) => file,
        Err(error) => reader.respond_error(error).await,
    }
}

/// Kinds of days, each with the value of the parameter `days`, a title, and the API endpoint.
pub(crate) const KINDS: [(&str, &str, &str); 2] =
    [("ex", "Ex-dates", "ex-dates"), ("pay", "Payments", "payment-dates")];
/// Names of the filter parameters, the same on the page and in the API.
const FILTERS: [&str; 3] = ["symbols", "sector", "min_yield"];
/// Maximum length of a filter's value, in characters.
const LONGEST: usize = 1_300;

/// Choices of the reader on the calendar page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalendarChoice {
    pub(crate) kind: &'static str,
    /// True for a span of one week, false for one month.
    pub(crate) is_week: bool,
    /// First day of the span.
    pub(crate) first: NaiveDate,
    /// First day of the history that the reader may see. No span begins earlier.
    floor: NaiveDate,
    /// Filters that are set, as pairs of parameter name and value.
    pub(crate) filters: Vec<(&'static str, String)>,
}

impl CalendarChoice {
    /// Reads the choices from the query. `floor` is the first day of the history that the reader may see.
    pub(crate) fn read(parameters: &Form, today: NaiveDate, floor: NaiveDate) -> Self {
        let kind = KINDS.iter().find(|(name, ..)| *name == parameters.text("days")).unwrap_or(&KINDS[0]);
        let is_week = parameters.text("span") == "week";
        let asked = parameters.text("from").parse().unwrap_or(today);
        let first = begin(asked.clamp(floor, today + Days::new(366)), is_week);
        let filters = FILTERS.into_iter().filter_map(|name| {
            let value: String = parameters.text(name).chars().take(LONGEST).collect();
            (!value.is_empty()).then_some((name, value))
        });
        Self { kind: kind.0, is_week, first: first.max(floor), floor, filters: filters.collect() }
    }

    /// Last day of the span.
    pub(crate) fn last(&self) -> NaiveDate {
        let monday = begin(self.first, true);
        match self.is_week {
            true => monday + Days::new(6),
            false => begin(self.first, false) + Months::new(1) - Days::new(1),
        }
    }

    /// The same choices for the next span if `is_later`, otherwise for the previous span. `None` if the previous span is
    /// before the reader's history.
    pub(crate) fn moved(&self, is_later: bool) -> Option<Self> {
        let first = match is_later {
            true => self.last() + Days::new(1),
            false if self.first == self.floor => return None,
            false => begin(begin(self.first, self.is_week) - Days::new(1), self.is_week).max(self.floor),
        };
        Some(Self { first, ..self.clone() })
    }

    /// Copy of the choices for another kind of date: `ex` (ex-dates) or `pay` (payments).
    pub(crate) fn of_kind(&self, kind: &'static str) -> Self {
        Self { kind, ..self.clone() }
    }

    /// The same choices for the week or month that contains the first day of this span.
    pub(crate) fn in_span(&self, is_week: bool) -> Self {
        Self { is_week, first: begin(self.first, is_week).max(self.floor), ..self.clone() }
    }

    /// The same choices for the week that contains a day.
    pub(crate) fn week_of(&self, day: NaiveDate) -> Self {
        Self { first: day, ..self.clone() }.in_span(true)
    }

    /// Path and query of the page.
    pub(crate) fn address(&self) -> String {
        let span = if self.is_week { "week" } else { "month" };
        let filters: String = self.filters_query();
        format!("/calendar?days={}&span={span}&from={}{filters}", self.kind, self.first)
    }

    /// Path and query of the API call that returns the rows of the page.
    pub(crate) fn call(&self) -> String {
        let endpoint =
            KINDS.iter().find(|(name, ..)| *name == self.kind).map_or("", |(.., endpoint)| *endpoint);
        format!(
            "/v1/dividends/{endpoint}?start_date={}&end_date={}{}&include_projected=true&limit=500",
            self.first,
            self.last(),
            self.filters_query()
        )
    }

    fn filters_query(&self) -> String {
        self.filters.iter().map(|(name, value)| format!("&{name}={}", encode(value))).collect()
    }

    /// Value of a filter; empty if it is not set.
    pub(crate) fn filter(&self, name: &str) -> &str {
        self.filters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// First day of the week or month that contains a day.
fn begin(day: NaiveDate, is_week: bool) -> NaiveDate {
    match is_week {
        true => day - Days::new(day.weekday().num_days_from_monday().into()),
        false => day.with_day(1).unwrap_or(day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a date")
    }

    fn choice(query: &str) -> CalendarChoice {
        CalendarChoice::read(&Form::from_query(query), day("2024-06-17"), day("2023-06-17"))
    }

    fn moved(choice: &CalendarChoice, is_later: bool) -> Option<NaiveDate> {
        choice.moved(is_later).map(|choice| choice.first)
    }

    #[test]
    fn spans_follow_each_other_without_a_gap() {
        let month = choice("");
        assert_eq!((month.first, month.last()), (day("2024-06-01"), day("2024-06-30")));
        assert_eq!(
            (moved(&month, true), moved(&month, false)),
            (Some(day("2024-07-01")), Some(day("2024-05-01")))
        );
        let week = choice("span=week&from=2024-06-19");
        assert_eq!((week.first, week.last()), (day("2024-06-17"), day("2024-06-23")));
        let around = (moved(&week, true), moved(&week, false));
        assert_eq!(around, (Some(day("2024-06-24")), Some(day("2024-06-10"))));
    }

    #[test]
    fn no_span_begins_before_the_readers_history() {
        assert_eq!(choice("from=1990-01-01").first, day("2023-06-17"));
        assert_eq!(choice("from=1990-01-01").last(), day("2023-06-30"));
        assert_eq!(moved(&choice("from=2023-07-05"), false), Some(day("2023-06-17")));
        assert_eq!(moved(&choice("from=1990-01-01"), false), None);
        assert_eq!(choice("from=1990-01-01").in_span(true).first, day("2023-06-17"));
        assert_eq!(choice("from=nonsense").first, day("2024-06-01"));
    }

    #[test]
    fn the_call_has_the_filters() {
        let call = choice("days=pay&symbols=KO,PEP&min_yield=2&sector=Real+Estate").call();
        let expected = "/v1/dividends/payment-dates?start_date=2024-06-01&end_date=2024-06-30&symbols=KO,PEP&sector=Real%20Estate&min_yield=2&include_projected=true&limit=500";
        assert_eq!(call, expected);
    }
}
