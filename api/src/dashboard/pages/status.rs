//! Page `/status`: health of the service. The page is for people; programs call `/v1/health`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::app::state::App;
use crate::dashboard::view::layout::{self, Section, Viewer};
use crate::dashboard::view::numbers::format_grouped;
use crate::dashboard::visitor::Visitor;
use crate::routes::health::{ComponentStatus, Health, Status};

const TITLE: &str = "Status";

/// Shows the status page. This handler is used while the dashboard is switched on.
pub(crate) async fn show_status(visitor: Visitor) -> Response {
    let health = Health::from_app(&visitor.app);
    (code(&health), visitor.render_page(TITLE, Section::Other, &body(&health))).into_response()
}

/// Shows the status page. This handler is used instead of [`show_status`] while the dashboard is switched off. Visitors
/// cannot sign in then, so the page does not need a session.
pub(crate) async fn show_status_without_dashboard(State(app): State<App>) -> Response {
    let health = Health::from_app(&app);
    (code(&health), layout::render_page(TITLE, Viewer::Reader, Section::Other, false, &body(&health)))
        .into_response()
}

fn code(health: &Health) -> StatusCode {
    if health.status == Status::Down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

fn body(health: &Health) -> Markup {
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
        div.narrow {
            h1 { (TITLE) }
            p class=(class) role="status" { strong { (title) ". " } (text) }
            section.panel aria-labelledby="parts" {
                h2 id="parts" { "Parts" }
                dl {
                    div { dt { "Database" } dd { (state(components.postgres)) } }
                    div { dt { "Accounts" } dd { (state(components.accounts)) } }
                    div { dt { "Log" } dd { (state(components.nats)) } }
                    div { dt { "Newest trading day" } dd { (as_of) } }
                    div { dt { "Behind the log" } dd { (lag) } }
                    div { dt { "Data version" } dd { code { (projection.data_version.as_deref().unwrap_or("none")) } } }
                    div { dt { "Service version" } dd { (health.version) } }
                }
            }
            p.hint { "Reload to see the current state. Programs can call " a href="/v1/health" { "/v1/health" } "." }
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
