//! `/openapi.json`: the contract for programs. No key. For people the same document is the page `/docs`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::Value;

use super::method::Document;
use crate::app::state::App;

/// The routes around the document.
pub(crate) fn routes(document: &Value) -> Router<App> {
    let document = Arc::new(Document::new(document));
    // A promotion changes it at most.
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")];
    let openapi = async move |State(app): State<App>| {
        (headers, document.under(&app.projection.method())).into_response()
    };
    Router::new().route("/openapi.json", get(openapi))
}
