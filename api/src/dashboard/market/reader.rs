//! Reader of a market page: the person or program that requests the page. The extractor applies the page limit of the
//! client address, looks up the session, and determines the tier.
//!
//! Responses with rendered pages. A page is taken from the cache, or built from API responses that all have one data
//! version.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use bytes::Bytes;
use maud::{Markup, html};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::api_calls::{ApiCalls, MarketError, MarketResult, encode, with_parameter};
use super::block::render_listings;
use super::values::{rows_of, str_of};
use crate::admission::RequestContext;
use crate::app::App;
use crate::app::settings::MarketPages;
use crate::app::site_address::SiteAddress;
use crate::auth::Tier;
use crate::connection::current_request_id;
use crate::dashboard::error::PageError;
use crate::dashboard::form::Form;
use crate::dashboard::view::format_count;
use crate::dashboard::view::layout::{
    PageLayout, Preview, Section, Viewer, csrf_field, render_layout, render_page, search_form, to_sentence,
};
use crate::dashboard::visitor::{Visitor, has_market_pages, target_of};
use crate::parameters::ResponseFormat;
use crate::read::memory_tables::LeftOut;
use crate::render::cache::{CacheKey, CachedResponse};

/// Router for the pages' API calls, and permits that limit the number of pages built at once.
#[derive(Debug, Clone)]
pub(crate) struct PageRenderer {
    pub(crate) data: Router,
    pub(crate) renders: Arc<Semaphore>,
}

/// Person or program that requests a market page.
#[derive(Debug, Clone)]
pub(crate) struct MarketReader {
    pub(crate) app: App,
    pub(crate) renderer: PageRenderer,
    /// Tier that determines how many years of history the pages show.
    pub(crate) tier: Tier,
    /// Visitor of the dashboard, signed in or not; `None` if the service has no dashboard.
    visitor: Option<Visitor>,
    /// Scheme and host of the site.
    pub(crate) origin: String,
    query: String,
}

impl FromRequestParts<App> for MarketReader {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let unavailable = || PageError::NotFound.into_response();
        let caller = RequestContext::from_extensions(&parts.extensions).ok_or_else(unavailable)?;
        let (client, is_proxied) = (caller.client, caller.is_proxied);
        if let Err(refused) = app.throttle.charge_page(client) {
            app.metrics.throttled.inc();
            return Err(too_many(app, refused.retry_after_seconds));
        }
        let renderer = parts.extensions.get::<PageRenderer>().cloned().ok_or_else(unavailable)?;
        let visitor = find_visitor(parts, app).await.map_err(IntoResponse::into_response)?;
        let own_tier = match &visitor {
            Some(visitor) => visitor.tier().await,
            None => None,
        };
        let tier = own_tier.unwrap_or(Tier::Free).max(app.settings.dashboard.pages_tier);
        let public = app.settings.dashboard.public_url.as_ref();
        let origin = SiteAddress::from_request(&parts.headers, client, is_proxied, public).origin;
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self { app: app.clone(), renderer, tier, visitor, origin, query })
    }
}

/// Loads the visitor; `None` if the service has no dashboard. If only account holders may see the pages, fails for a
/// visitor without a session.
async fn find_visitor(parts: &mut Parts, app: &App) -> Result<Option<Visitor>, PageError> {
    if app.settings.dashboard.pages == MarketPages::SignedIn {
        let visitor = Visitor::with_session(parts, app).await?;
        return match visitor.signed {
            Some(_) => Ok(Some(visitor)),
            None => Err(PageError::SignIn(target_of(parts))),
        };
    }
    if app.dashboard.is_none() {
        return Ok(None);
    }
    Visitor::from_request_parts(parts, app).await.map(Some)
}

/// Response for a client address that exceeded its page limit. `seconds` is the wait until the next page is allowed.
fn too_many(app: &App, seconds: u64) -> Response {
    let viewer = if app.dashboard.is_some() { Viewer::Visitor } else { Viewer::Reader };
    let body = html! {
        h1 { "Too many pages" }
        p { "Your address has opened many pages. Wait " (seconds) " s, then reload. Programs use the " a href="/docs" { "API" } "." }
    };
    let has_market = has_market_pages(app, viewer);
    let page = render_page("Too many pages", viewer, Section::Other, has_market, &body);
    let mut response = (StatusCode::TOO_MANY_REQUESTS, page).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

impl MarketReader {
    /// True if the reader is not signed in. The page then contains no account data.
    fn is_anonymous(&self) -> bool {
        self.visitor.as_ref().is_none_or(|visitor| visitor.signed.is_none())
    }

    /// Hidden CSRF field for forms; `None` if the reader is not signed in.
    pub(crate) fn csrf_field(&self) -> Option<Markup> {
        let signed = self.visitor.as_ref()?.signed.as_ref()?;
        Some(csrf_field(signed.holder().secret))
    }

    /// Query parameters of the request.
    pub(crate) fn parameters(&self) -> Form {
        Form::read(&self.query)
    }

    /// Appends the query of the request to `path`.
    pub(crate) fn with_parameters(&self, path: &str) -> String {
        if self.query.is_empty() { path.to_owned() } else { format!("{path}?{}", self.query) }
    }

    /// Number of years of history that the reader may see.
    pub(crate) fn depth_years(&self) -> i32 {
        self.app.admission.tiers().depth_years(self.tier)
    }

    /// Renders the layout around a page's content.
    fn lay_out(&self, title: &str, section: Section, preview: Option<Preview<'_>>, body: &Markup) -> String {
        let viewer = self.visitor.as_ref().map_or(Viewer::Reader, Visitor::viewer);
        let has_market = has_market_pages(&self.app, viewer);
        render_layout(&PageLayout { title, viewer, section, has_market, preview, body }).0
    }
}

/// Maximum number of attempts to build a page. An attempt fails if its API responses have different data versions.
const ATTEMPTS: usize = 3;

/// Content of a page, without the layout.
#[derive(Debug)]
pub(crate) struct PageContent {
    pub(crate) title: String,
    pub(crate) description: String,
    /// Path of the page for search engines; empty if search engines should not list it.
    pub(crate) canonical: String,
    pub(crate) section: Section,
    pub(crate) body: Markup,
}

impl MarketReader {
    /// Responds with a page. `target` is the cache key: the path, with the query parameters that determine the content.
    pub(crate) async fn respond<F>(&self, target: String, build: impl Fn(ApiCalls) -> F) -> Response
    where
        F: Future<Output = Result<PageContent, MarketError>>,
    {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        let page = self.cached_page(target, build).await;
        self.respond_with(page.map(|page| ([(header::CONTENT_TYPE, html)], page)))
    }

    /// Responds with a page that shows what the visitor has entered. Such a page is not cached.
    pub(crate) async fn respond_once<F>(&self, build: impl Fn(ApiCalls) -> F) -> Response
    where
        F: Future<Output = Result<PageContent, MarketError>>,
    {
        self.respond_with(self.build_page(build).await.map(Html))
    }

    /// Responds with a result, or with the page of its error. The caller awaits the result, because the futures of pages
    /// are too large to be moved.
    pub(crate) fn respond_with<T: IntoResponse>(&self, result: MarketResult<T>) -> Response {
        match result {
            Ok(done) => done.into_response(),
            Err(error) => self.respond_error(error),
        }
    }

    /// Returns the page, if possible from the cache. Pages of signed-in readers contain account data, so they are never
    /// cached.
    async fn cached_page<F>(
        &self,
        target: String,
        build: impl Fn(ApiCalls) -> F,
    ) -> Result<Bytes, MarketError>
    where
        F: Future<Output = Result<PageContent, MarketError>>,
    {
        if !self.is_anonymous() {
            return Ok(self.build_page(build).await?.into());
        }
        let generation = self.app.projection.pin()?;
        let key = CacheKey {
            version: generation.version(),
            control_revision: generation.control_state().revision,
            today: self.app.today(),
            format: ResponseFormat::Json,
            tier: Some(self.tier),
            // The target of a page begins with the origin of the site, the target of an API response with a path. A
            // page and an API response therefore never have the same cache key.
            target: format!("{}{target}", self.origin),
        };
        if let Some(cached) = self.app.response_cache.get(&key) {
            return Ok(cached.body.clone());
        }
        let fill = async {
            let body = self.build_page(build).await?.into();
            Ok::<_, MarketError>(CachedResponse { body, etag: key.etag(&key.version), link: None })
        };
        Ok(self.app.response_cache.get_or_render(&key, fill).await?.body.clone())
    }

    /// Builds the page from API calls. Starts again if the responses have different data versions.
    async fn build_page<F>(&self, build: impl Fn(ApiCalls) -> F) -> Result<String, MarketError>
    where
        F: Future<Output = Result<PageContent, MarketError>>,
    {
        let permit = self.renderer.renders.acquire().await;
        let _permit = permit.map_err(|error| MarketError::Unavailable(error.to_string()))?;
        for _ in 0..ATTEMPTS {
            let calls = self.calls().await?;
            let mut content = build(calls.clone()).await?;
            if calls.have_one_version() {
                if let Some(left_out) = calls.left_out() {
                    content.body = html! { (content.body) (render_left_out(&left_out)) };
                }
                return Ok(self.render(&content));
            }
        }
        Err(MarketError::Unavailable("the data changed during every attempt".to_owned()))
    }

    /// Creates an in-process API client with the reader's tier. For a reader without an account, it leaves out the
    /// securities that must not be redistributed.
    pub(crate) async fn calls(&self) -> MarketResult<ApiCalls> {
        let mut restricted = Arc::default();
        if self.is_anonymous() {
            let generation = self.app.projection.pin()?;
            restricted = self.app.memory_tables.restricted(&generation).await?;
        }
        Ok(ApiCalls::new(self.renderer.data.clone(), self.tier, restricted))
    }

    /// Creates an in-process API client for files, which cannot leave out single securities.
    ///
    /// # Errors
    /// Some securities must be left out.
    pub(crate) async fn file_calls(&self) -> MarketResult<ApiCalls> {
        let calls = self.calls().await?;
        if calls.is_restricted() { Err(MarketError::NeedsKey) } else { Ok(calls) }
    }

    fn render(&self, content: &PageContent) -> String {
        let canonical = format!("{}{}", self.origin, content.canonical);
        let preview =
            Preview { description: &content.description, canonical: &canonical, origin: &self.origin };
        let preview = (!content.canonical.is_empty()).then_some(preview);
        self.lay_out(&content.title, content.section, preview, &content.body)
    }

    /// Responds with the error page for an error, or with the redirect if the error is [`MarketError::Redirect`].
    pub(crate) fn respond_error(&self, error: MarketError) -> Response {
        let text = to_sentence(&error.to_string());
        let sentence = html! { p { (text) } };
        let (status, title, content) = match error {
            MarketError::Redirect(address) => return Redirect::temporary(&address).into_response(),
            MarketError::UnknownSymbol { symbol, nearest } => {
                return self.respond_unknown(&symbol, &nearest);
            }
            MarketError::NotFound { .. } => (StatusCode::NOT_FOUND, "Nothing is here", sentence),
            MarketError::Refused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "That did not work", sentence),
            MarketError::NotInPlan(_) => (StatusCode::FORBIDDEN, "Not in this plan", sentence),
            MarketError::Ambiguous(_, listings) => {
                let content = html! { (sentence) (render_listings(rows_of(&listings))) };
                (StatusCode::MULTIPLE_CHOICES, "Several listings", content)
            }
            MarketError::LeftOut(_) | MarketError::RatesLeftOut(_) | MarketError::NeedsKey => {
                let content = html! { p { (text) " " a href="/quality#sources" { "Sources and licences" } } };
                (StatusCode::FORBIDDEN, "Left out", content)
            }
            MarketError::Unavailable(cause) => {
                let request_id = current_request_id();
                tracing::warn!(request_id = request_id.as_str(), %cause, "a market page is unavailable");
                let content = html! { p { "The service cannot show this now; try again shortly. Request " (request_id) "." } };
                (StatusCode::SERVICE_UNAVAILABLE, "Not now", content)
            }
        };
        let body = html! { h1 { (title) } (content) };
        (status, Html(self.lay_out(title, Section::Security, None, &body))).into_response()
    }

    /// Responds with the rows of an API call as a CSV file. `refusal` is the message if the API refuses the call.
    pub(crate) async fn respond_csv(&self, call: &str, file: &str, refusal: &str) -> Response {
        let result = async {
            let response = self.file_calls().await?.respond(&with_parameter(call, "format=csv")).await?;
            match response.status().is_success() {
                true => Ok(as_file(response, file)),
                false => Err(MarketError::Refused(refusal.to_owned())),
            }
        }
        .await;
        self.respond_with(result)
    }

    /// Responds with status 404, a search form, and securities that are similar to the unknown symbol.
    fn respond_unknown(&self, symbol: &str, nearest: &[Value]) -> Response {
        let title = format!("No security has the symbol {symbol}");
        let body = html! {
            h1 { (title) }
            p { "Search by symbol, former symbol, ISIN or name:" }
            (search_form("Search again", symbol))
            @if !nearest.is_empty() {
                h2 { "Similar securities" }
                ul {
                    @for near in nearest {
                        li { a href={ "/s/" (encode(str_of(&near["symbol"]))) } { (str_of(&near["symbol"])) } " " (str_of(&near["name"])) }
                    }
                }
            }
        };
        (StatusCode::NOT_FOUND, Html(self.lay_out(&title, Section::Security, None, &body))).into_response()
    }
}

/// Renders the securities that a page leaves out.
fn render_left_out(LeftOut { sources, symbols }: &LeftOut) -> Markup {
    html! {
        p.notice { (format_count(symbols.len(), "security is", "securities are")) " left out: the licence of " (sources.join(", ")) " forbids redistribution. " a href="/quality#sources" { "Sources and licences" } }
    }
}

/// Marks a response as a download with this file name.
pub(crate) fn as_file(mut response: Response, name: &str) -> Response {
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}
