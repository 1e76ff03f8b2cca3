//! Days of a calendar span (week or month), each with the dividends of the day.

use chrono::{Datelike, NaiveDate, Weekday};
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::calendar::filters::CalendarChoice;
use crate::dashboard::market::values::{Unit, render_value, str_of};

/// Maximum number of dividends per day in the month view. The week view shows all.
const SHOWN: usize = 5;

/// Renders the days of the chosen span. Weekend days without dividends are omitted.
pub(crate) fn render_days(choice: &CalendarChoice, rows: &[Value], today: NaiveDate) -> Markup {
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
            (render_value(&event["amount"], Unit::Money(str_of(&event["currency"]))))
            @if is_estimate { " " span.muted { "estimated" } }
        }
    }
}
