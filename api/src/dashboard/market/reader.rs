//! Reader of a market page: the person or program that requests the page. The extractor applies the page limit of the
//! client address, looks up the session, and determines the tier.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tokio::sync::Semaphore;

use crate::account::accounts;
use crate::admission::RequestContext;
use crate::app::dashboard_settings::MarketPages;
use crate::app::site_address::SiteAddress;
use crate::app::state::App;
use crate::auth::tier::Tier;
use crate::dashboard::error::{PageError, VISITOR_LOOKUP_LIMIT, run_within};
use crate::dashboard::form::Form;
use crate::dashboard::view::layout::{
    PageLayout, Preview, Section, Viewer, csrf_field, render_layout, render_page,
};
use crate::dashboard::visitor::{Visitor, has_market_pages, target_of};

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
        let tier = match &visitor {
            Some(visitor) => tier_of(visitor).await.max(app.settings.dashboard.pages_tier),
            None => app.settings.dashboard.pages_tier,
        };
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

/// Tier of the visitor's account, or the lowest tier if it is unknown.
async fn tier_of(visitor: &Visitor) -> Tier {
    let Some(signed) = &visitor.signed else { return Tier::Free };
    let find = async {
        let client = visitor.dashboard.database_client().await?;
        Ok::<_, PageError>(accounts::find_account(&client, &signed.session.email).await?.effective_tier)
    };
    run_within(VISITOR_LOOKUP_LIMIT, find).await.unwrap_or(Tier::Free)
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
    pub(crate) fn is_anonymous(&self) -> bool {
        self.visitor.as_ref().is_none_or(|visitor| visitor.signed.is_none())
    }

    /// Hidden CSRF field for forms; `None` if the reader is not signed in.
    pub(crate) fn csrf_field(&self) -> Option<Markup> {
        let signed = self.visitor.as_ref()?.signed.as_ref()?;
        Some(csrf_field(signed.holder().secret))
    }

    /// Query parameters of the request.
    pub(crate) fn parameters(&self) -> Form {
        Form::from_query(&self.query)
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
    pub(crate) fn lay_out(
        &self,
        title: &str,
        section: Section,
        preview: Option<Preview<'_>>,
        body: &Markup,
    ) -> String {
        let viewer = self.visitor.as_ref().map_or(Viewer::Reader, Visitor::viewer);
        let has_market = has_market_pages(&self.app, viewer);
        render_layout(&PageLayout { title, viewer, section, has_market, preview, body }).0
    }
}
