//! Market pages: securities, search and income for readers without a key.
//!
//! Pacing of page responses, so that page views leave CPU time to API requests.
//!
//! Invariants: except on `/quality`, pages show values of API responses, rounded for readers and with the exact value in
//! the element. Page views are not charged to an account.
//!
//! Invariants: page responses are passed to their connections one at a time. A slow client does not delay the next
//! page.

pub(super) mod api_calls;
mod block;
mod calendar;
mod calendar_events;
mod chart;
pub(crate) mod feed;
mod income;
mod quality;
mod reader;
mod screener;
mod search;
mod sectors;
mod security;
mod values;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Redirect, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::settings::MarketPages;
use crate::app::{App, OrdinaryRequests};
use reader::PageRenderer;

pub(crate) use api_calls::encode;
pub(crate) use income::{TRANSACTIONS_PATH, TransactionText, read_holdings};
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
        .route("/income.csv", get(async || Redirect::to("/income")).post(income::show_csv))
        .route("/income.ics", get(async || Redirect::to("/income")).post(income::show_calendar))
        .route("/quality", get(quality::show_quality))
        .route("/sitemap.xml", get(search::show_sitemap))
        .layer(Extension(PageRenderer { data, renders }))
        .layer(DefaultBodyLimit::max(UPLOAD))
        .layer(from_fn_with_state(PageTurns::new(app.ordinary_requests.clone()), pace_response))
}

/// Pause before a page response while an API request is in progress. Timers have no finer resolution than 1 ms.
const PAUSE: Duration = Duration::from_millis(1);

/// State of the pacing. `turns` has a single permit, for the page response that may be sent now.
#[derive(Debug, Clone)]
pub(super) struct PageTurns {
    api_requests: OrdinaryRequests,
    turns: Arc<Semaphore>,
}

/// Response body of a page, with the permit of [`PageTurns`]. The permit is released when the connection has taken the
/// first bytes.
#[derive(Debug)]
struct PacedBody {
    body: Body,
    turn: Option<OwnedSemaphorePermit>,
}

impl PageTurns {
    pub(super) fn new(api_requests: OrdinaryRequests) -> Self {
        Self { api_requests, turns: Arc::new(Semaphore::new(1)) }
    }
}

/// Middleware that delays a page response until no other page response is being passed to its connection.
async fn pace_response(State(pages): State<PageTurns>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    // The semaphore is never closed.
    let turn = pages.turns.acquire_owned().await.ok();
    if pages.api_requests.is_any_in_progress() {
        tokio::time::sleep(PAUSE).await;
    }
    response.map(|body| Body::new(PacedBody { body, turn }))
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.turn = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use futures::FutureExt;
    use tokio::time::Instant;
    use tower::ServiceExt;

    use super::*;

    fn pages() -> (OrdinaryRequests, Router) {
        let api_requests = OrdinaryRequests::default();
        let turns = PageTurns::new(api_requests.clone());
        let pages =
            Router::new().route("/", get(async || "page")).layer(from_fn_with_state(turns, pace_response));
        (api_requests, pages)
    }

    async fn open(pages: &Router) -> Response {
        pages.clone().oneshot(Request::<Body>::default()).await.expect("a router cannot fail")
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_pauses_only_while_an_api_request_is_in_progress() {
        let (api_requests, pages) = pages();
        let started = Instant::now();
        drop(open(&pages).await);
        assert_eq!(started.elapsed(), Duration::ZERO);
        let api_request = api_requests.begin();
        drop(open(&pages).await);
        let paused = started.elapsed();
        assert!(paused >= PAUSE, "{paused:?}");
        drop(api_request);
        drop(open(&pages).await);
        assert_eq!(started.elapsed(), paused);
    }

    #[tokio::test]
    async fn a_page_waits_until_the_connection_has_taken_the_page_before() {
        let (_, pages) = pages();
        let mut first = open(&pages).await.into_body();
        let mut second = Box::pin(open(&pages));
        assert!((&mut second).now_or_never().is_none());
        let taken = std::future::poll_fn(|cx| Pin::new(&mut first).poll_frame(cx)).await;
        assert!(taken.is_some_and(|frame| frame.is_ok_and(|frame| frame.is_data())));
        assert!((&mut second).now_or_never().is_some(), "the first body still exists");
    }
}
