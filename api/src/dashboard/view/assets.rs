//! Static files of the pages, icon and crawler rules.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::app::dashboard_settings::MarketPages;
use crate::app::state::App;

const STYLE: &str = include_str!("../../../templates/style.css");
const SCRIPT: &str = include_str!("../../../templates/script.js");
const REFERENCE_SCRIPT: &str = include_str!("../../../templates/reference.js");
const ICON: &str = include_str!("../../../templates/icon.svg");
/// Icon for `/favicon.ico`, which some browsers request even if the page names another icon.
const FAVICON: &[u8] = include_bytes!("../../../templates/favicon.ico");
/// Image that link previews of the pages show.
const PREVIEW: &[u8] = include_bytes!("../../../templates/preview.png");
/// Crawler rules, which allow only the public pages.
const ROBOTS: &str = "User-agent: *\nDisallow: /dashboard\nDisallow: /link/\nDisallow: /sign-in\nDisallow: /sign-up\nDisallow: /v1/\n";

/// Router of the static files.
pub(crate) fn asset_routes() -> Router<App> {
    Router::new()
        .route("/assets/style.css", get(async || file("text/css; charset=utf-8", STYLE)))
        .route("/assets/script.js", get(async || file("text/javascript; charset=utf-8", SCRIPT)))
        .route("/assets/reference.js", get(async || file("text/javascript; charset=utf-8", REFERENCE_SCRIPT)))
        .route("/assets/icon.svg", get(async || file("image/svg+xml", ICON)))
        .route("/assets/preview.png", get(async || file("image/png", PREVIEW)))
        .route("/favicon.ico", get(async || file("image/x-icon", FAVICON)))
        .route(
            "/robots.txt",
            get(async |State(app): State<App>| file("text/plain; charset=utf-8", robots(&app))),
        )
}

/// Crawler rules, with the sitemap if the market pages are public and `PUBLIC_URL` is set.
fn robots(app: &App) -> String {
    let settings = &app.settings.dashboard;
    match &settings.public_url {
        Some(public) if settings.pages == MarketPages::Public => {
            format!("{ROBOTS}Sitemap: {}/sitemap.xml\n", public.origin())
        }
        _ => ROBOTS.to_owned(),
    }
}

fn file<T: IntoResponse>(kind: &'static str, content: T) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=300")], content)
}
