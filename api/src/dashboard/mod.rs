//! Account dashboard and public pages: keys, usage, plan, API reference and service status.
//!
//! Invariants: only a POST from a page of the same origin changes state. Pages load nothing from other sites.

mod error;
pub(crate) mod form;
mod market;
pub(crate) mod pages;
pub(crate) mod security_headers;
mod session_cookie;
pub(crate) mod view;
pub(crate) mod visitor;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use maud::html;
use serde_json::Value;
use tower_http::csrf::CsrfLayer;

use crate::app::dashboard_settings::MarketPages;
use crate::app::state::App;
use error::{PAGE_DEADLINE, PASSWORD_PAGE_DEADLINE, PageError, limit_page_time};
use pages::reference::{self, ReferencePage};
use pages::{account, keys, link, plans, portfolios, sign_in, status};
use security_headers::{add_security_headers, is_secure_request, set_security_headers};
use view::layout::{PageLayout, Section, Viewer, render_layout};
use view::live_example::ExampleCache;
use visitor::has_market_pages;

/// Maximum size of a form, in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// Router of all pages. `data` is the API router. Without the dashboard, only plans, reference, status and market pages
/// exist.
pub(crate) fn dashboard_routes(app: &App, data: Router, document: &Value) -> Router<App> {
    let pages = match app.dashboard.is_some() {
        true => pages().merge(pages_with_password()),
        false => pages_without_dashboard(),
    };
    let feeds = market::feed::feed_routes(&data);
    pages
        .merge(
            market::market_routes(app, data.clone())
                .layer(from_fn_with_state(PAGE_DEADLINE, limit_page_time)),
        )
        .layer(Extension(ExampleCache::new(data)))
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
        .route("/dashboard/portfolios", get(portfolios::show_portfolios).post(portfolios::save_portfolio))
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
        .route("/dashboard/log", get(pages::audit_log::show_audit_log))
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
    let (title, section) = ("Page not found", Section::Other);
    let layout = PageLayout { title, viewer, section, has_market, preview: None, body: &body };
    let mut response = (StatusCode::NOT_FOUND, render_layout(&layout)).into_response();
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
