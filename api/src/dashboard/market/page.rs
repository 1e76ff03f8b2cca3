//! Responses with rendered pages. A page is taken from the cache, or built from API responses that all have one data
//! version.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use bytes::Bytes;
use maud::{Markup, html};
use serde_json::Value;

use crate::connection::request_id::current_request_id;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult, encode, with_parameter};
use crate::dashboard::market::block::render_listings;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::values::{rows_of, str_of};
use crate::dashboard::view::layout::{Preview, Section, search_form, to_sentence};
use crate::dashboard::view::numbers::format_count;
use crate::parameters::ResponseFormat;
use crate::read::memory_tables::LeftOut;
use crate::render::cache::{CacheKey, CachedResponse};

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
        match self.cached_page(target, build).await {
            Ok(page) => {
                ([(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], page)
                    .into_response()
            }
            Err(error) => self.respond_error(error).await,
        }
    }

    /// Responds with a page that shows what the visitor has entered. Such a page is not cached.
    pub(crate) async fn respond_once<F>(&self, build: impl Fn(ApiCalls) -> F) -> Response
    where
        F: Future<Output = Result<PageContent, MarketError>>,
    {
        match self.build_page(build).await {
            Ok(page) => Html(page).into_response(),
            Err(error) => self.respond_error(error).await,
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
    pub(crate) async fn respond_error(&self, error: MarketError) -> Response {
        let (status, title, text) = match error {
            MarketError::Redirect(address) => return Redirect::temporary(&address).into_response(),
            MarketError::UnknownSymbol { symbol, nearest } => {
                return self.respond_unknown(&symbol, &nearest);
            }
            MarketError::NotFound { message, .. } => {
                (StatusCode::NOT_FOUND, "Nothing is here", to_sentence(&message))
            }
            MarketError::Ambiguous(message, listings) => return self.respond_ambiguous(&message, &listings),
            MarketError::Refused(message) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "That did not work", to_sentence(&message))
            }
            MarketError::NotInPlan(message) => {
                (StatusCode::FORBIDDEN, "Not in this plan", to_sentence(&message))
            }
            error @ (MarketError::LeftOut(_) | MarketError::NeedsKey) => {
                let body = html! {
                    h1 { "Left out" }
                    p { (to_sentence(&error.to_string())) " " a href="/quality#sources" { "Sources and licences" } }
                };
                let page = self.lay_out("Left out", Section::Security, None, &body);
                return (StatusCode::FORBIDDEN, Html(page)).into_response();
            }
            MarketError::Unavailable(cause) => {
                let request_id = current_request_id();
                tracing::warn!(request_id = request_id.as_str(), %cause, "a market page is unavailable");
                let text =
                    format!("The service cannot show this now; try again shortly. Request {request_id}.");
                (StatusCode::SERVICE_UNAVAILABLE, "Not now", text)
            }
        };
        let body = html! { h1 { (title) } p { (text) } };
        (status, Html(self.lay_out(title, Section::Security, None, &body))).into_response()
    }

    /// Responds with the rows of an API call as a CSV file. `refusal` is the message if the API refuses the call.
    pub(crate) async fn respond_csv(&self, call: &str, file: &str, refusal: &str) -> Response {
        let respond = async { self.file_calls().await?.respond(&with_parameter(call, "format=csv")).await };
        match respond.await {
            Ok(response) if response.status().is_success() => as_file(response, file),
            Ok(_) => self.respond_error(MarketError::Refused(refusal.to_owned())).await,
            Err(error) => self.respond_error(error).await,
        }
    }

    /// Responds with status 300 and the listings among which the reader has to choose.
    fn respond_ambiguous(&self, message: &str, listings: &Value) -> Response {
        let body = html! {
            h1 { "Several listings" }
            p { (to_sentence(message)) }
            (render_listings(rows_of(listings)))
        };
        (StatusCode::MULTIPLE_CHOICES, Html(self.lay_out("Several listings", Section::Security, None, &body)))
            .into_response()
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
