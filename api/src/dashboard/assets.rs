//! The stylesheet, the script and the icon of the pages.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::app::App;

const STYLE: &str = include_str!("../../templates/style.css");
const SCRIPT: &str = include_str!("../../templates/script.js");
const ICON: &str = include_str!("../../templates/icon.svg");

/// The routes of the files that pages load.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/assets/style.css", get(async || file("text/css; charset=utf-8", STYLE)))
        .route("/assets/script.js", get(async || file("text/javascript; charset=utf-8", SCRIPT)))
        .route("/assets/icon.svg", get(async || file("image/svg+xml", ICON)))
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=300")], text)
}
