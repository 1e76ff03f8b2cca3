//! Page `/status`: health, traffic, incidents and age of the data. The page is for people; programs call `/v1/status`.
//!
//! Part of the status page: planned work, traffic by day and hour, groups of endpoints, and incidents.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use market::decimal::ExactDecimal;
use maud::{Markup, html};
use rust_decimal::Decimal;

use crate::app::App;
use crate::app::service_history::{
    EndpointGroup, Incident, Maintenance, MaintenanceState, ServiceHistory, TrafficPeriod,
};
use crate::dashboard::view::layout::{
    self, Number, Section, Text, Viewer, data_table, format_time, stacked_rows,
};
use crate::dashboard::view::{format_count, format_decimal, format_grouped};
use crate::dashboard::visitor::Visitor;
use crate::read::memory_tables::FeedAge;
use crate::routes::service::{ComponentStatus, Health, Status, StatusReport};

const TITLE: &str = "Status";

/// Shows the status page. This handler is used while the dashboard is switched on.
pub(crate) async fn show_status(visitor: Visitor) -> Response {
    let report = StatusReport::from_app(&visitor.app).await;
    (code(&report.health), visitor.render_page(TITLE, Section::Other, &body(&report))).into_response()
}

/// Shows the status page. This handler is used instead of [`show_status`] while the dashboard is switched off. Visitors
/// cannot sign in then, so the page does not need a session.
pub(crate) async fn show_status_without_dashboard(State(app): State<App>) -> Response {
    let report = StatusReport::from_app(&app).await;
    let page = layout::render_page(TITLE, Viewer::Reader, Section::Other, false, &body(&report));
    (code(&report.health), page).into_response()
}

fn code(health: &Health) -> StatusCode {
    if health.status == Status::Down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

fn body(StatusReport { health, feeds, history }: &StatusReport) -> Markup {
    let (class, title, text) = match health.status {
        Status::Ok => ("done", "All systems work", "Requests are served with current data."),
        Status::Degraded => ("notice", "Degraded", "Requests are served, but new data may arrive late."),
        Status::Down => ("alert", "Down", "Requests are refused with 503 until the database replies again."),
    };
    let (components, projection) = (&health.components, &health.components.projection);
    let unknown = || "unknown".to_owned();
    let as_of = projection.as_of.map_or_else(unknown, |day| day.format("%-d %B %Y").to_string());
    let lag = match (projection.lag_events, projection.lag_seconds) {
        (Some(0), _) => "none".to_owned(),
        (Some(events), Some(seconds)) => {
            format!("{} messages, {} s", format_grouped(events), format_grouped(seconds))
        }
        _ => unknown(),
    };
    html! {
        h1 { (TITLE) }
        p class=(class) role="status" { strong { (title) ". " } (text) }
        @if let Some(history) = history { (render_announcements(&history.maintenance)) (render_history(history)) }
        @else { p.notice { "The history is not available, because the database of the accounts does not reply in time. Reload to try again." } }
        section.panel.block aria-labelledby="feeds" { h2 id="feeds" { "Age of the data" } (feed_table(feeds.as_deref())) }
        section.panel.block aria-labelledby="parts" {
            h2 id="parts" { "Parts" }
            dl.facts {
                div { dt { "Database" } dd { (state(components.postgres)) } }
                div { dt { "Accounts" } dd { (state(components.accounts)) } }
                div { dt { "Log" } dd { (state(components.nats)) } }
                div { dt { "Newest trading day" } dd { (as_of) } }
                div { dt { "Behind the log" } dd { (lag) } }
                div { dt { "Data version" } dd { code { (projection.data_version.as_deref().unwrap_or("none")) } } }
                div { dt { "Service version" } dd { (health.version) } }
            }
        }
        p.hint { "Reload to see the current state. Programs can call " a href="/v1/status" { "/v1/status" } " and " a href="/v1/health" { "/v1/health" } "." }
    }
}

fn feed_table(feeds: Option<&[FeedAge]>) -> Markup {
    html! {
        @match feeds {
            None => p { "Unknown." },
            Some([]) => p { "No data." },
            Some(feeds) => (stacked_rows("Table: age of the data", feeds, &[
                (Text("Feed"), &|feed| html! { (feed.source) }),
                (Text("Kind"), &|feed| html! { (feed.kind) }),
                (Text("Newest day"), &|feed| html! { (feed.newest.format("%-d %b %Y")) }),
                (Text("Last update"), &|feed| format_time(feed.updated_at)),
            ])),
        }
    }
}

fn state(status: ComponentStatus) -> &'static str {
    match status {
        ComponentStatus::Ok => "works",
        ComponentStatus::Down => "does not reply",
        ComponentStatus::Full => "cannot store new data",
        ComponentStatus::NotConfigured => "not configured",
    }
}

/// Colours of the bars, by the least share of calls that did not fail, in percent.
const LEVELS: [(Decimal, &str, &str); 3] = [
    (Decimal::from_parts(999, 0, 0, false, 1), "answered", "99.9 % or more"),
    (Decimal::from_parts(99, 0, 0, false, 0), "mistake", "99 % or more"),
    (Decimal::ZERO, "failed", "less than 99 %"),
];
const NO_TRAFFIC: (&str, &str) = ("track", "No traffic");
/// Width of a bar with the space after it, and width of a bar, in units of the drawing.
const STEP: usize = 10;
const BAR: usize = 8;

/// Notices of planned work that has not ended.
fn render_announcements(works: &[Maintenance]) -> Markup {
    html! {
        @for work in works.iter().rev().filter(|work| work.state != MaintenanceState::Completed) {
            p.notice {
                strong { @if work.state == MaintenanceState::Planned { "Planned work. " } @else { "Planned work is in progress. " } }
                (format_time(work.start)) " to " (format_time(work.end)) ": " (work.description)
            }
        }
    }
}

fn render_history(history: &ServiceHistory) -> Markup {
    let total = &history.total;
    html! {
        section.panel.block aria-labelledby="calls" {
            h2 id="calls" { "Calls without server errors" }
            p.figure { strong { (share(total.availability_percent)) } " of " (format_count(total.calls, "call", "calls")) " in " (history.days.len()) " days" }
            ul.legend.chart aria-hidden="true" {
                @for (class, title) in LEVELS.map(|(_, class, title)| (class, title)).into_iter().chain([NO_TRAFFIC]) {
                    li { span class={ "dot " (class) } {} (title) }
                }
            }
            (bars("By day (UTC)", &history.days, "%-d %b"))
            (bars("By hour (UTC), last 24 hours", &history.hours, "%H:%M"))
            p.hint {
                "Calls of the API and of pages, counted by the service itself. A call failed if its answer has a status of 500 or more. "
                "Refused calls, such as an invalid key or a limit (4xx), did not fail. Probes, this page and unknown addresses are not counted. "
                "“No traffic” means that no call arrived, or that no instance ran. State of " (format_time(history.as_of)) "."
            }
        }
        section.panel.block aria-labelledby="groups" {
            h2 id="groups" { "Endpoints" }
            (group_table(&history.endpoint_groups))
            p.hint { "p50 and p95: half of the calls, and 95 % of them, took at most this time until the head of the answer." }
        }
        section.panel.block aria-labelledby="incidents" {
            h2 id="incidents" { "Incidents in 90 days" }
            (incident_table(&history.incidents))
            p.hint { "Minutes in which more than 5 % of the calls failed, with gaps of up to five minutes." }
        }
        section.panel.block aria-labelledby="maintenance" {
            h2 id="maintenance" { "Planned work" }
            (maintenance_table(&history.maintenance))
        }
    }
}

/// One bar for each period, and a table with the same shares. `format` is the format of the start of a period.
fn bars(title: &str, periods: &[TrafficPeriod], format: &str) -> Markup {
    let start = |period: &TrafficPeriod| period.start.format(format).to_string();
    let text = |period: &TrafficPeriod| format!("{}: {}", start(period), describe(period));
    let (width, latest) = (periods.len() * STEP, periods.last());
    let used = periods.iter().filter(|period| period.calls > 0);
    let lowest = used.min_by_key(|period| period.availability_percent).map(text);
    let label = format!("{title}; lowest share: {}", lowest.as_deref().unwrap_or(NO_TRAFFIC.1));
    html! {
        figure.chart {
            p.unit { (title) }
            p.reading aria-hidden="true" { (latest.map(text).unwrap_or_default()) }
            svg.values.thin role="img" aria-label=(label) {
                svg viewBox={ "0 0 " (width) " 10" } preserveAspectRatio="none" {
                    @for (number, period) in periods.iter().enumerate() {
                        rect class=(level(period)) x=(number * STEP) y="0" width=(BAR) height="10" {}
                        rect.hit x=(number * STEP) y="0" width=(STEP) height="10" { title { (text(period)) } }
                    }
                }
            }
            div.ends aria-hidden="true" { span { (periods.first().map(start).unwrap_or_default()) } span { (latest.map(start).unwrap_or_default()) } }
        }
        details {
            summary { "The same as a table" }
            (data_table(title, &[Text("Start"), Text("Without server errors"), Number("Calls"), Number("Failed")], html! {
                @for period in periods.iter().rev() {
                    tr {
                        th scope="row" { (start(period)) }
                        td { @if period.calls == 0 { (NO_TRAFFIC.1) } @else { (share(period.availability_percent)) } }
                        td.number { (format_grouped(period.calls)) } td.number { (format_grouped(period.failures)) }
                    }
                }
            }))
        }
    }
}

fn level(period: &TrafficPeriod) -> &'static str {
    let Some(share) = period.availability_percent else { return NO_TRAFFIC.0 };
    LEVELS.into_iter().find(|(least, ..)| share.0 >= *least).map_or(NO_TRAFFIC.0, |(_, class, _)| class)
}

fn describe(period: &TrafficPeriod) -> String {
    match period.calls {
        0 => NO_TRAFFIC.1.to_lowercase(),
        calls => {
            format!("{} of {}", share(period.availability_percent), format_count(calls, "call", "calls"))
        }
    }
}

fn share(percent: Option<ExactDecimal>) -> String {
    percent.map_or_else(|| "–".to_owned(), |percent| format!("{} %", format_decimal(percent.0, 2, 4)))
}

fn milliseconds(duration: Option<ExactDecimal>) -> String {
    duration.map_or_else(|| "–".to_owned(), |duration| format!("{} ms", format_decimal(duration.0, 0, 2)))
}

fn group_table(groups: &[EndpointGroup]) -> Markup {
    html! {
        @if groups.is_empty() { p { "No traffic." } } @else {
            (stacked_rows("Table: endpoints in 90 days", groups, &[
                (Text("Group"), &|row| html! { (row.group) }),
                (Number("Calls"), &|row| html! { (format_grouped(row.last_90_days.calls)) }),
                (Number("Without server errors"), &|row| html! { (share(row.last_90_days.availability_percent)) }),
                (Number("p50"), &|row| html! { (milliseconds(row.last_90_days.p50_ms)) }),
                (Number("p95"), &|row| html! { (milliseconds(row.last_90_days.p95_ms)) }),
                (Number("p50, 24 hours"), &|row| html! { (milliseconds(row.last_24_hours.p50_ms)) }),
                (Number("p95, 24 hours"), &|row| html! { (milliseconds(row.last_24_hours.p95_ms)) }),
            ]))
        }
    }
}

fn incident_table(incidents: &[Incident]) -> Markup {
    html! {
        @if incidents.is_empty() { p { "None." } } @else {
            (stacked_rows("Table: incidents", incidents, &[
                (Text("Start"), &|incident| format_time(incident.start)),
                (Text("End"), &|incident| incident.end.map_or_else(|| html! { "may continue" }, format_time)),
                (Number("Failed"), &|incident| html! { (format_decimal(incident.failure_percent.0, 0, 2)) " % of " (format_grouped(incident.calls)) }),
            ]))
        }
    }
}

fn maintenance_table(works: &[Maintenance]) -> Markup {
    html! {
        @if works.is_empty() { p { "None." } } @else {
            (stacked_rows("Table: planned work", works, &[
                (Text("Start"), &|work| format_time(work.start)),
                (Text("End"), &|work| format_time(work.end)),
                (Text("State"), &|work| html! { (work.state.as_str().replace('_', " ")) }),
                (Text("Work"), &|work| html! { (work.description) }),
            ]))
        }
    }
}
