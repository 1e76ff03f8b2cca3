//! `GET /openapi.json`: the OpenAPI document. The endpoint needs no API key. The page `/docs` shows the same document.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::Value;

use super::rules_notice::NoticedDocument;
use crate::app::state::App;

pub(crate) fn routes(document: &Value) -> Router<App> {
    let document = Arc::new(NoticedDocument::new(document));
    // The document changes only with the rules of the served generation, so clients may cache it for five minutes.
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")];
    let openapi = async move |State(app): State<App>| {
        (headers, document.text_for(&app.projection.served_rules())).into_response()
    };
    Router::new().route("/openapi.json", get(openapi))
}
