//! The account dashboard and the pages around it: keys, usage and plan in the owner's own hands.
//!
//! Invariants: state changes by POST only, from a page of the same origin and session; pages are never stored; nothing
//! comes from elsewhere, and no page holds a script or a style; `/v1` reads no cookie. What is done to accounts is done
//! in [`crate::account`].

mod account;
mod assets;
mod attempts;
mod chart;
mod cookie;
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
pub(crate) mod settings;
mod site;
pub(crate) mod state;
mod usage;
mod visitor;

use axum::extract::DefaultBodyLimit;
use axum::response::Redirect;
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use tower_http::csrf::CsrfLayer;

use crate::app::App;
use error::PageError;
use example::Example;

/// The longest form, bytes.
const FORM: usize = 16 * 1024;

/// The routes of the pages; `data` answers the example on the first of them. Without a dashboard there are the plans.
pub(crate) fn routes(app: &App, data: Router) -> Router<App> {
    let pages = match app.dashboard.is_some() {
        true => pages().layer(Extension(Example::new(data))).layer(DefaultBodyLimit::max(FORM)),
        false => Router::new().route("/plans", get(plans::show_alone)),
    };
    let origin_check = CsrfLayer::new().with_rejection_response(guard::foreign);
    let headers = axum::middleware::from_fn_with_state(app.clone(), guard::headers);
    pages.layer(origin_check).layer(headers).merge(assets::routes())
}

fn pages() -> Router<App> {
    Router::new()
        .route("/", get(landing::show))
        .route("/plans", get(plans::show))
        .route("/sign-up", get(entry::show_sign_up).post(entry::sign_up))
        .route("/sign-in", get(entry::show_sign_in).post(entry::sign_in))
        .route("/sign-out", action("/dashboard").post(entry::sign_out))
        .route("/link/{secret}", get(link::show).post(link::spend))
        .route("/dashboard", get(overview::show))
        .route("/dashboard/keys", get(keys::show).post(keys::create))
        .route("/dashboard/keys/{id}/replace", get(key::ask_re_roll).post(key::re_roll))
        .route("/dashboard/keys/{id}/delete", get(key::ask_delete).post(key::delete))
        .route("/dashboard/usage", get(usage::show))
        .route("/dashboard/plan", get(plan::show).post(plan::choose))
        .route("/dashboard/plan/cancel", action("/dashboard/plan").post(plan::cancel))
        .route("/dashboard/account", get(account::show))
        .route("/dashboard/sessions/end", action("/dashboard/account").post(account::end_session))
        .route("/dashboard/password", action("/dashboard/account").post(account::change_password))
        .route("/dashboard/address", action("/dashboard/account").post(account::change_address))
        .route("/dashboard/delete", action("/dashboard/account").post(account::delete))
        .route("/dashboard/log", get(log::show))
        .route("/dashboard/{*rest}", get(async || PageError::NotFound))
}

/// What is only done by POST: whoever opens its address by hand is led to the page it belongs to.
fn action(page: &'static str) -> MethodRouter<App> {
    get(async move || Redirect::to(page))
}
