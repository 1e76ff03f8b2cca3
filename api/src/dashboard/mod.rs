//! The account dashboard and the pages around it: keys, usage and plan in the owner's own hands.
//!
//! Invariants: state changes by POST only, from a page of the same origin and session; pages are never stored; nothing
//! comes from elsewhere, and no page holds a script or a style; `/v1` reads no cookie; every page has a deadline. What is done to accounts is done
//! in [`crate::account`].

mod account;
mod assets;
mod attempts;
mod chart;
mod cookie;
mod deadline;
mod entry;
mod error;
mod example;
mod form;
mod guard;
mod key;
mod keys;
mod landing;
mod layout;
mod link;
mod log;
mod notice;
mod overview;
mod plan;
mod plans;
mod prose;
mod reference;
mod reference_key;
pub(crate) mod settings;
mod site;
pub(crate) mod state;
mod status;
mod usage;
mod visitor;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use maud::html;
use serde_json::Value;
use tower_http::csrf::CsrfLayer;

use crate::app::App;
use error::PageError;
use example::Example;
use layout::{Section, Viewer};
use reference::Reference;

/// The longest form, bytes.
const FORM: usize = 16 * 1024;

/// The routes of the pages; `data` answers the example on the first of them. Without a dashboard there are the plans, the
/// reference and the status.
pub(crate) fn routes(app: &App, data: Router, document: &Value) -> Router<App> {
    let pages = match app.dashboard.is_some() {
        true => pages().merge(pages_with_password()),
        false => pages_alone(),
    };
    let pages = pages
        .layer(Extension(Example::new(data)))
        .layer(Extension(Arc::new(Reference::new(document))))
        .layer(DefaultBodyLimit::max(FORM));
    let origin_check = CsrfLayer::new().with_rejection_response(guard::foreign);
    let headers = axum::middleware::from_fn_with_state(app.clone(), guard::headers);
    pages.layer(origin_check).layer(headers).merge(assets::routes())
}

fn pages() -> Router<App> {
    Router::new()
        .route("/", get(landing::show))
        .route("/plans", get(plans::show))
        .route("/docs", get(reference::show))
        .route("/status", get(status::show))
        .route("/sign-out", action("/dashboard").post(entry::sign_out))
        .route("/dashboard", get(overview::show))
        .route("/dashboard/keys", get(keys::show).post(keys::create))
        .route("/dashboard/keys/reference", action("/docs").post(reference_key::create))
        .route("/dashboard/keys/{id}/replace", get(key::ask_re_roll).post(key::re_roll))
        .route("/dashboard/keys/{id}/delete", get(key::ask_delete).post(key::delete))
        .route("/dashboard/usage", get(usage::show))
        .route("/dashboard/plan", get(plan::show).post(plan::choose))
        .route("/dashboard/plan/cancel", action("/dashboard/plan").post(plan::cancel))
        .route("/dashboard/account", get(account::show))
        .route("/dashboard/sessions/end", action("/dashboard/account").post(account::end_session))
        .route("/dashboard/log", get(log::show))
        .route("/dashboard/{*rest}", get(async || PageError::NotFound))
        .layer(from_fn(deadline::of_page))
}

/// The pages whose forms carry a password.
fn pages_with_password() -> Router<App> {
    Router::new()
        .route("/sign-up", get(entry::show_sign_up).post(entry::sign_up))
        .route("/sign-in", get(entry::show_sign_in).post(entry::sign_in))
        .route("/link/{secret}", get(link::show).post(link::spend))
        .route("/dashboard/password", action("/dashboard/account").post(account::change_password))
        .route("/dashboard/address", action("/dashboard/account").post(account::change_address))
        .route("/dashboard/delete", action("/dashboard/account").post(account::delete))
        .layer(from_fn(deadline::with_password))
}

/// The pages of a service without a dashboard.
fn pages_alone() -> Router<App> {
    Router::new()
        .route("/plans", get(plans::show_alone))
        .route("/docs", get(reference::show_alone))
        .route("/status", get(status::show_alone))
}

/// The 404 for a browser. `path`: what was requested, without a key in it.
pub(crate) fn nothing_at(app: &App, request: &Request, path: &str) -> Response {
    let viewer = if app.dashboard.is_some() { Viewer::Visitor } else { Viewer::Reader };
    let body = html! {
        h1 { "Page not found" }
        p { "Nothing is at " code { (path) } ". The address may be mistyped, or the page was removed." }
        p.actions {
            @if app.dashboard.is_some() { a.button href="/" { "Start page" } }
            a.button.second href="/docs" { "Reference" }
        }
    };
    let page = layout::page("Page not found", viewer, Section::Other, &body);
    let mut response = (StatusCode::NOT_FOUND, page).into_response();
    let is_secure = guard::is_secure_request(app, request);
    guard::secure(response.headers_mut(), is_secure);
    response
}

/// What is only done by POST: whoever opens its address by hand is led to the page it belongs to.
fn action(page: &'static str) -> MethodRouter<App> {
    get(async move || Redirect::to(page))
}
