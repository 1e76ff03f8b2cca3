//! Static files of the pages, icon and crawler rules.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::app::state::App;

const STYLE: &str = include_str!("../../../templates/style.css");
const SCRIPT: &str = include_str!("../../../templates/script.js");
const REFERENCE_SCRIPT: &str = include_str!("../../../templates/reference.js");
const ICON: &str = include_str!("../../../templates/icon.svg");
/// Icon. Some browsers request this path even if the page names another icon.
const FAVICON: &[u8] = include_bytes!("../../../templates/favicon.ico");
/// Crawler rules, which allow only the public pages.
const ROBOTS: &str = "User-agent: *\nDisallow: /dashboard\nDisallow: /link/\nDisallow: /sign-in\nDisallow: /sign-up\nDisallow: /v1/\n";

/// Router of the static files.
pub(crate) fn asset_routes() -> Router<App> {
    Router::new()
        .route("/assets/style.css", get(async || file("text/css; charset=utf-8", STYLE)))
        .route("/assets/script.js", get(async || file("text/javascript; charset=utf-8", SCRIPT)))
        .route("/assets/reference.js", get(async || file("text/javascript; charset=utf-8", REFERENCE_SCRIPT)))
        .route("/assets/icon.svg", get(async || file("image/svg+xml", ICON)))
        .route("/favicon.ico", get(async || file("image/x-icon", FAVICON)))
        .route("/robots.txt", get(async || file("text/plain; charset=utf-8", ROBOTS)))
}

fn file<T: IntoResponse>(kind: &'static str, content: T) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=300")], content)
}
