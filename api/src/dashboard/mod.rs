//! Account dashboard and public pages: keys, usage, plan, API reference and service status.
//!
//! Invariants: only a POST from a page of the same origin changes state. Pages load nothing from other sites.

mod error;
pub(crate) mod form;
mod market;
pub(crate) mod pages;
mod session_cookie;
pub(crate) mod view;
pub(crate) mod visitor;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use maud::html;
use serde_json::Value;
use tower_http::csrf::CsrfLayer;

use crate::account::portfolios::MAX_TRANSACTION_BYTES;
use crate::admission::RequestContext;
use crate::app::App;
use crate::app::settings::MarketPages;
use crate::app::site_address::is_https;
use error::{ErrorText, PAGE_DEADLINE, PASSWORD_PAGE_DEADLINE, PageError, limit_page_time};
use pages::reference::{self, ReferencePage};
use pages::{account, keys, link, methods, plans, portfolios, sign_in, status};
use view::layout::{Section, Viewer, render_page};
use view::live_example::ExampleCache;
use visitor::has_market_pages;

/// Maximum size of a form, in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// Maximum size of a form with a portfolio, in bytes. Encoding enlarges the text of a field.
const MAX_PORTFOLIO_BYTES: usize = 3 * MAX_TRANSACTION_BYTES;

/// Router of all pages. `data` is the API router. Without the dashboard, only plans, reference, status and market pages
/// exist.
pub(crate) fn dashboard_routes(app: &App, data: Router, document: &Value) -> Router<App> {
    let pages = match app.dashboard.is_some() {
        true => pages().merge(pages_with_password()),
        false => pages_without_dashboard(),
    };
    let feeds = market::feed::feed_routes(&data);
    pages
        .merge(methods::document_routes(document).layer(from_fn_with_state(PAGE_DEADLINE, limit_page_time)))
        .merge(
            market::market_routes(app, data.clone())
                .layer(from_fn_with_state(PAGE_DEADLINE, limit_page_time)),
        )
        .layer(Extension(ExampleCache::new(app.clone(), data)))
        .layer(Extension(Arc::new(ReferencePage::new(document))))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .layer(CsrfLayer::new().with_rejection_response(|_| PageError::Forged.into_response()))
        .layer(from_fn_with_state(app.clone(), add_security_headers))
        .merge(asset_routes())
        .merge(feeds)
}

fn pages() -> Router<App> {
    Router::new()
        .route("/", get(pages::landing::show_landing))
        .route("/plans", get(plans::show_plans))
        .route("/docs", get(reference::show_reference))
        .route("/status", get(status::show_status))
        .route("/sign-out", redirect_to_form("/dashboard").post(sign_in::sign_out))
        .route("/dashboard", get(pages::overview::show_overview))
        .route("/dashboard/keys", get(keys::show_keys).post(keys::create_key))
        .route("/dashboard/keys/reference", redirect_to_form("/docs").post(reference::create_reference_key))
        .route("/dashboard/keys/{id}/replace", get(keys::show_replace_form).post(keys::replace_key))
        .route("/dashboard/keys/{id}/delete", get(keys::show_delete_form).post(keys::delete_key))
        .route(
            "/dashboard/portfolios",
            get(portfolios::show_portfolios)
                .post(portfolios::save_portfolio)
                .layer(DefaultBodyLimit::max(MAX_PORTFOLIO_BYTES)),
        )
        .route(
            "/dashboard/portfolios/delete",
            redirect_to_form("/dashboard/portfolios").post(portfolios::delete_portfolio),
        )
        .route(
            "/dashboard/portfolios/link",
            redirect_to_form("/dashboard/portfolios").post(portfolios::create_link),
        )
        .route("/dashboard/usage", get(pages::overview::show_usage))
        .route("/dashboard/plan", get(plans::show_plan).post(plans::choose_tier))
        .route("/dashboard/plan/cancel", redirect_to_form("/dashboard/plan").post(plans::cancel_subscription))
        .route("/dashboard/account", get(account::show_account))
        .route("/dashboard/sessions/end", redirect_to_form("/dashboard/account").post(account::end_session))
        .route("/dashboard/log", get(account::show_audit_log))
        .route("/dashboard/{*rest}", get(async || PageError::NotFound))
        .layer(from_fn_with_state(PAGE_DEADLINE, limit_page_time))
}

/// Router of the pages with a password form.
fn pages_with_password() -> Router<App> {
    Router::new()
        .route("/sign-up", get(sign_in::show_sign_up).post(sign_in::sign_up))
        .route("/sign-in", get(sign_in::show_sign_in).post(sign_in::sign_in))
        .route("/link/{secret}", get(link::show_link).post(link::redeem_link))
        .route("/dashboard/password", redirect_to_form("/dashboard/account").post(account::change_password))
        .route("/dashboard/address", redirect_to_form("/dashboard/account").post(account::change_address))
        .route("/dashboard/delete", redirect_to_form("/dashboard/account").post(account::delete_account))
        .layer(from_fn_with_state(PASSWORD_PAGE_DEADLINE, limit_page_time))
}

/// Router of the pages that exist if the dashboard is switched off.
fn pages_without_dashboard() -> Router<App> {
    Router::new()
        .route("/plans", get(plans::show_plans_without_dashboard))
        .route("/docs", get(reference::show_reference_without_dashboard))
        .route("/status", get(status::show_status_without_dashboard))
}

/// Renders the page for status 404. `path` is the requested path, with secrets masked.
pub(crate) fn not_found_page(app: &App, request: &Request, path: &str) -> Response {
    let viewer = if app.dashboard.is_some() { Viewer::Visitor } else { Viewer::Reader };
    let body = html! {
        h1 { "Page not found" }
        p { "Nothing is at " code { (path) } ". The address may be mistyped, or the page was removed." }
        p.actions {
            @if app.dashboard.is_some() { a.button href="/" { "Start page" } }
            a.button.second href="/docs" { "Reference" }
        }
    };
    let has_market = has_market_pages(app, viewer);
    let page = render_page("Page not found", viewer, Section::Other, has_market, &body);
    let mut response = (StatusCode::NOT_FOUND, page).into_response();
    set_security_headers(response.headers_mut(), is_secure_request(app, request));
    response
}

/// GET handler for a path that only accepts the POST of a form. It redirects to the page with the form.
fn redirect_to_form(page: &'static str) -> MethodRouter<App> {
    get(async move || Redirect::to(page))
}

const STYLE: &str = include_str!("../../templates/style.css");
const SCRIPT: &str = include_str!("../../templates/script.js");
const REFERENCE_SCRIPT: &str = include_str!("../../templates/reference.js");
const ICON: &str = include_str!("../../templates/icon.svg");
/// Icon for `/favicon.ico`, which some browsers request even if the page names another icon.
const FAVICON: &[u8] = include_bytes!("../../templates/favicon.ico");
/// Image that link previews of the pages show.
const PREVIEW: &[u8] = include_bytes!("../../templates/preview.png");
/// Crawler rules, which allow only the public pages.
const ROBOTS: &str = "User-agent: *\nDisallow: /dashboard\nDisallow: /link/\nDisallow: /sign-in\nDisallow: /sign-up\nDisallow: /v1/\n";

/// Router of the static files.
fn asset_routes() -> Router<App> {
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

/// Content security policy: only files of this service, no frames, no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, browsers would also hide the origin of forms, which the origin check needs.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Middleware that adds the security headers to every page. If the market pages (pages with market data) are public, it
/// also adds their search form to error pages.
async fn add_security_headers(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_secure = is_secure_request(&app, &request);
    let mut response = next.run(request).await;
    if let Some(text) = response.extensions_mut().remove::<ErrorText>()
        && has_market_pages(&app, Viewer::Visitor)
    {
        *response.body_mut() = text.render(true).0.into();
    }
    set_security_headers(response.headers_mut(), is_secure);
    response
}

/// True if a request came over HTTPS.
fn is_secure_request(app: &App, request: &Request) -> bool {
    let is_proxied =
        RequestContext::from_extensions(request.extensions()).is_some_and(|caller| caller.is_proxied);
    is_https(request.headers(), is_proxied, app.settings.dashboard.public_url.as_ref())
}

/// Sets the security headers. A content security policy that the page has already set is not replaced.
fn set_security_headers(target: &mut HeaderMap, is_secure: bool) {
    for (name, value) in HEADERS {
        if name != header::CONTENT_SECURITY_POLICY || !target.contains_key(&name) {
            target.insert(name, HeaderValue::from_static(value));
        }
    }
    if is_secure {
        target.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}
