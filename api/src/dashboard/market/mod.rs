//! Market pages: securities, search and income for readers without a key.
//!
//! Invariants: except on `/quality`, pages show values of API responses, rounded for readers and with the exact value in
//! the element. Page views are not charged to an account.

mod api_calls;
mod block;
mod calendar;
mod calendar_events;
mod chart;
pub(crate) mod feed;
mod income;
mod pacing;
mod page;
mod quality;
mod reader;
mod screener;
mod search;
mod sectors;
mod security;
mod values;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use tokio::sync::Semaphore;

use crate::app::dashboard_settings::MarketPages;
use crate::app::state::App;
pub(crate) use api_calls::encode;
pub(crate) use income::{TRANSACTIONS_PATH, TransactionText, read_holdings};
use pacing::{PageTurns, pace_response};
use reader::PageRenderer;
pub(crate) use security::render_extract;

/// Maximum size of an uploaded portfolio, in bytes.
const UPLOAD: usize = 256 * 1024;

/// Router of the market pages. `data` is the API router from which the pages get their data. The router is empty if the
/// pages are switched off.
pub(crate) fn market_routes(app: &App, data: Router) -> Router<App> {
    if app.settings.dashboard.pages == MarketPages::Off {
        return Router::new();
    }
    let renders = Arc::new(Semaphore::new(app.settings.costly_connections.max(1)));
    Router::new()
        .route("/s/{symbol}", get(security::show_security))
        .route("/s/{symbol}/why/{figure}", get(security::figures::show_explanation))
        .route("/s/{symbol}/{file}", get(security::show_csv))
        .route("/search", get(search::show_search))
        .route("/calendar", get(calendar::show_calendar))
        .route("/calendar.csv", get(calendar::show_csv))
        .route("/calendar.ics", get(calendar::show_file))
        .route("/screener", get(screener::show_screener))
        .route("/screener.csv", get(screener::show_csv))
        .route("/sectors", get(sectors::show_sectors))
        .route("/sectors/{sector}", get(sectors::show_sector))
        .route("/income", get(income::show_form).post(income::show_income))
        .merge(income::transactions::transaction_routes())
        .route("/income.csv", get(income::redirect_to_form).post(income::show_csv))
        .route("/income.ics", get(income::redirect_to_form).post(income::show_calendar))
        .route("/quality", get(quality::show_quality))
        .route("/sitemap.xml", get(search::show_sitemap))
        .layer(Extension(PageRenderer { data, renders }))
        .layer(DefaultBodyLimit::max(UPLOAD))
        .layer(from_fn_with_state(PageTurns::new(app.ordinary_requests.clone()), pace_response))
}
