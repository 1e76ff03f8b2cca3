//! `/calendar`: ex-dates, payments and splits by month or week, with filters, CSV file and iCalendar subscription.

use std::collections::BTreeMap;

use axum::response::Response;
use chrono::{Datelike, Days, Months, NaiveDate, Weekday};
use maud::{Markup, html};
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketResult, encode, with_parameter};
use super::block::{
    Block, Choice, ListOption, read_currency, render_choices, render_currencies, render_select,
};
use super::calendar_events::Calendar;
use super::reader::{MarketReader, PageContent};
use super::values::{Unit, decimal_of, humanize, render_converted, render_value, rows_of, str_of};
use crate::auth::years_before;
use crate::dashboard::form::Form;
use crate::dashboard::view::layout::Section;

pub(crate) async fn show_calendar(reader: MarketReader) -> Response {
    let choice = choice_of(&reader);
    reader.respond(choice.address(), |calls| build(calls, choice.clone())).await
}

/// Responds with the rows of the calendar as CSV.
pub(crate) async fn show_csv(reader: MarketReader) -> Response {
    let choice = choice_of(&reader);
    reader.respond_csv(&choice.call(), "calendar.csv", "the filters cannot be read").await
}

fn choice_of(reader: &MarketReader) -> CalendarChoice {
    let today = reader.app.today();
    CalendarChoice::read(&reader.parameters(), today, years_before(today, reader.depth_years()))
}

async fn build(calls: ApiCalls, choice: CalendarChoice) -> MarketResult<PageContent> {
    let call = choice.call();
    let (rows, has_more) = read_events(&calls, &call).await?;
    let sectors = calls.json("/v1/sectors?fields=sector").await?;
    let sectors: Vec<ListOption> = rows_of(&sectors["data"])
        .iter()
        .map(|row| str_of(&row["sector"]).to_owned())
        .map(|name| (name.clone(), name))
        .collect();
    let csv = choice.address().replacen("/calendar?", "/calendar.csv?", 1);
    let body = html! {
        h1 { "Dividend calendar" }
        (choices(&choice))
        (filters(&choice, &sectors))
        (Block { id: "days", title: &title(&choice), call: &call, csv: &csv, body: days(&choice, &rows, has_more) }.render())
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

/// Maximum number of API calls for the events of a page. A call returns up to 500 events.
const CALLS: usize = 5;

/// Reads the events of the span, those of the largest companies first on each day. The returned `bool` is true if
/// further events follow.
async fn read_events(calls: &ApiCalls, call: &str) -> MarketResult<(Vec<Value>, bool)> {
    let (mut events, mut target) = (Vec::new(), call.to_owned());
    for _ in 0..CALLS {
        let mut answer = calls.json(&target).await?;
        if let Value::Array(page) = answer["data"].take() {
            events.extend(page);
        }
        let cursor = str_of(&answer["meta"]["next_cursor"]);
        if cursor.is_empty() {
            return Ok((largest_first(events), false));
        }
        target = with_parameter(call, &format!("cursor={}", encode(cursor)));
    }
    Ok((largest_first(events), true))
}

fn largest_first(mut events: Vec<Value>) -> Vec<Value> {
    events.sort_by_cached_key(|event| std::cmp::Reverse(decimal_of(&event["reporting_market_cap"])));
    events
}

fn days(choice: &CalendarChoice, rows: &[Value], has_more: bool) -> Markup {
    html! {
        @if rows.is_empty() { p { (if choice.kind == "splits" { "No split is announced in these days." } else { "No dividend is declared or expected in these days." }) } }
        (render_days(choice, rows))
        @if has_more { p.hint { "These are the first " (rows.len()) ". Choose a week, or set a filter, to see the others." } }
    }
}

fn choices(choice: &CalendarChoice) -> Markup {
    let pick = |title, is_current, choice: CalendarChoice| {
        Choice::of_every_plan(title, choice.address(), is_current)
    };
    let kinds = KINDS.map(|(kind, title, ..)| pick(title, kind == choice.kind, choice.of_kind(kind)));
    let spans = [("Month", false), ("Week", true)];
    let spans = spans.map(|(title, is_week)| pick(title, is_week == choice.is_week, choice.in_span(is_week)));
    let [earlier, later] = [("← Earlier", false), ("Later →", true)].map(|(title, is_later)| Choice {
        title,
        address: choice.moved(is_later).map(|choice| choice.address()),
        is_current: false,
        hint: "A plan with a longer history includes this",
    });
    let today = Choice::of_every_plan(
        "Today",
        format!("{}#today", choice.on(choice.today).address()),
        choice.has_today(),
    );
    let moves = [earlier, today, later];
    html! { div.heading { (render_choices("Days", &kinds)) (render_choices("Span", &spans)) (render_choices("Move", &moves)) } }
}

fn filters(choice: &CalendarChoice, sectors: &[ListOption]) -> Markup {
    html! {
        details open[!choice.filters.is_empty()] { summary { "Filter and currency" }
            form.fields action="/calendar" method="get" {
                input type="hidden" name="days" value=(choice.kind);
                input type="hidden" name="span" value=(if choice.is_week { "week" } else { "month" });
                input type="hidden" name="from" value=(choice.first);
                div.field { label for="symbols" { "Symbols" } input id="symbols" name="symbols" value=(choice.filter("symbols")) placeholder="KO,PEP"; }
                (render_select("sector", "Sector", choice.filter("sector"), "All", sectors))
                div.field { label for="min_yield" { "Minimum yield, %" } input id="min_yield" name="min_yield" inputmode="decimal" value=(choice.filter("min_yield")); }
                (render_currencies(choice.filter("currency")))
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

/// Renders the days of the chosen span, a week in each row. Weekends are omitted if they have neither dividends nor
/// today.
fn render_days(choice: &CalendarChoice, rows: &[Value]) -> Markup {
    let is_weekend = |day: &NaiveDate| matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
    let mut by_day: BTreeMap<NaiveDate, Vec<&Value>> =
        choice.first.iter_days().take_while(|day| *day <= choice.last()).map(|day| (day, vec![])).collect();
    for row in rows {
        if let Some(events) = str_of(&row["event_date"]).parse().ok().and_then(|day| by_day.get_mut(&day)) {
            events.push(row);
        }
    }
    let is_shown = |day: &NaiveDate, events: &[&Value]| *day == choice.today || !events.is_empty();
    let has_weekends = by_day.iter().any(|(day, events)| is_weekend(day) && is_shown(day, events));
    html! {
        ol.days.seven[has_weekends] {
            @for (day, events) in by_day.iter().filter(|(day, _)| has_weekends || !is_weekend(day)) {
                li.today[*day == choice.today] id=[(*day == choice.today).then_some("today")].past[*day < choice.today].empty[events.is_empty()] data-weekday=(day.weekday().number_from_monday()) {
                    h3 { time datetime=(day) { (day.format("%a %-d %b")) } @if *day == choice.today { " " span.tag { "today" } } }
                    (render_events(events, choice, *day))
                }
            }
        }
    }
}

fn render_events(events: &[&Value], choice: &CalendarChoice, day: NaiveDate) -> Markup {
    let shown = if choice.is_week { events.len() } else { events.len().min(SHOWN) };
    let week = CalendarChoice { is_week: true, ..choice.clone() }.on(day);
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
            a href={ "/s/" (encode(str_of(&event["symbol"]))) } { (str_of(&event["symbol"])) } " "
            span.amount {
                @if is_estimate { abbr title="estimated from earlier payments" { "est." } " " }
                @if event["amount"].is_null() { (humanize(str_of(&event["type"]))) " " (str_of(&event["text"])) }
                @else { (render_converted(&event["amount"], str_of(&event["currency"]), event.get("converted"), Unit::PerShare)) }
            } " "
            span.name title=(str_of(&event["name"])) { (str_of(&event["name"])) } " "
            span.yield { (render_value(&event["dividend_yield"], Unit::Percent)) }
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
    reader.respond_with(calendar.respond_to_reader(&reader).await)
}

/// Kinds of days, each with the value of the parameter `days`, a title, and the path and further parameters of the API
/// call.
pub(crate) const KINDS: [(&str, &str, &str, &str); 3] = [
    ("ex", "Ex-dates", "/v1/dividends/ex-dates", "&include_projected=true"),
    ("pay", "Payments", "/v1/dividends/payment-dates", "&include_projected=true"),
    ("splits", "Splits", "/v1/splits/calendar", ""),
];
/// Names of the filter parameters, the same on the page and in the API.
const FILTERS: [&str; 4] = ["symbols", "sector", "min_yield", CURRENCY];
/// Filter that splits do not have.
const CURRENCY: &str = "currency";
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
    today: NaiveDate,
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
            let value: String = match name {
                CURRENCY => read_currency(parameters.text(CURRENCY)),
                name => parameters.text(name).chars().take(LONGEST).collect(),
            };
            (!value.is_empty()).then_some((name, value))
        });
        Self { kind: kind.0, is_week, first: first.max(floor), floor, today, filters: filters.collect() }
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

    /// Copy of the choices for another kind of date, the first member of an item of [`KINDS`].
    pub(crate) fn of_kind(&self, kind: &'static str) -> Self {
        Self { kind, ..self.clone() }
    }

    /// True if today is in the span.
    fn has_today(&self) -> bool {
        (self.first..=self.last()).contains(&self.today)
    }

    /// The same choices for the week or month that contains today, or else the first day of this span.
    fn in_span(&self, is_week: bool) -> Self {
        let day = if self.has_today() { self.today } else { self.first };
        Self { is_week, ..self.clone() }.on(day)
    }

    /// The same choices for the span that contains a day.
    fn on(&self, day: NaiveDate) -> Self {
        Self { first: begin(day, self.is_week).max(self.floor), ..self.clone() }
    }

    /// Path and query of the page.
    pub(crate) fn address(&self) -> String {
        let span = if self.is_week { "week" } else { "month" };
        let filters = self.filters_query(true);
        format!("/calendar?days={}&span={span}&from={}{filters}", self.kind, self.first)
    }

    /// Path and query of the API call that returns the rows of the page.
    pub(crate) fn call(&self) -> String {
        let (.., path, more) = KINDS.into_iter().find(|(name, ..)| *name == self.kind).unwrap_or(KINDS[0]);
        let (first, last, filters) = (self.first, self.last(), self.filters_query(self.kind != "splits"));
        format!("{path}?start_date={first}&end_date={last}{filters}{more}&limit=500")
    }

    fn filters_query(&self, has_currency: bool) -> String {
        let filters = self.filters.iter().filter(|(name, _)| has_currency || *name != CURRENCY);
        filters.map(|(name, value)| format!("&{name}={}", encode(value))).collect()
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
        CalendarChoice::read(&Form::read(query), day("2024-06-17"), day("2023-06-17"))
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
        assert_eq!(choice("from=2024-07-20").in_span(true).first, day("2024-07-01"));
        assert_eq!(choice("from=2024-06-03").in_span(true).first, day("2024-06-17"), "the week of today");
        assert_eq!(choice("from=nonsense").first, day("2024-06-01"));
    }

    #[test]
    fn the_call_has_the_filters() {
        let call = choice("days=pay&symbols=KO,PEP&min_yield=2&sector=Real+Estate").call();
        let expected = "/v1/dividends/payment-dates?start_date=2024-06-01&end_date=2024-06-30&symbols=KO,PEP&sector=Real%20Estate&min_yield=2&include_projected=true&limit=500";
        assert_eq!(call, expected);
    }
}
