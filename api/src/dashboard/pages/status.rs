//! Page `/status`: health, traffic, incidents and age of the data. The page is for people; programs call `/v1/status`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::app::state::App;
use crate::dashboard::pages::status_history::{render_announcements, render_history};
use crate::dashboard::view::layout::{self, Section, Text, Viewer, format_time, stacked_table};
use crate::dashboard::view::numbers::format_grouped;
use crate::dashboard::visitor::Visitor;
use crate::read::memory_tables::FeedAge;
use crate::routes::service::health::{ComponentStatus, Health, Status};
use crate::routes::service::status::StatusReport;

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
            Some(feeds) => (stacked_table("Table: age of the data", &[Text("Feed"), Text("Kind"), Text("Newest day"), Text("Last update")], html! {
                @for feed in feeds {
                    tr {
                        th scope="row" { (feed.source) }
                        td data-label="Kind" { (feed.kind) }
                        td data-label="Newest day" { (feed.newest.format("%-d %b %Y")) }
                        td data-label="Last update" { (format_time(feed.updated_at)) }
                    }
                }
            })),
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
