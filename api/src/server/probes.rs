//! `GET /livez` and `GET /readyz`: probes for an orchestrator and a load balancer. They need no API key and do no I/O.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::app::state::App;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/livez", get(live)).route("/readyz", get(ready))
}

/// Responds with 200 while the process runs.
async fn live() -> Response {
    probe_response(StatusCode::OK, json!({ "status": "alive" }))
}

/// Responds with 200 if this instance can serve requests, and otherwise with 503 and the reason.
async fn ready(State(app): State<App>) -> Response {
    match app.find_unreadiness() {
        None => probe_response(StatusCode::OK, json!({ "status": "ready" })),
        Some(reason) => probe_response(
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "status": "not_ready", "reason": reason }),
        ),
    }
}

fn probe_response(status: StatusCode, body: Value) -> Response {
    let mut response = (status, Json(body)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
