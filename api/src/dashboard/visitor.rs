//! Visitor of a page: anonymous, or the signed-in account.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use deadpool_postgres::Object;
use maud::Markup;

use super::error::{PAGE_DEADLINE, PageError, PageResult, VISITOR_LOOKUP_LIMIT, run_within};
use super::session_cookie;
use super::view::layout::{self, Section, SignedInHolder, Viewer};
use super::view::live_example::ExampleCache;
use crate::account::sessions::{self, BrowserSession, ClientDevices, SessionOrigin};
use crate::account::{AccountActor, accounts};
use crate::admission::RequestContext;
use crate::app::settings::MarketPages;
use crate::app::site_address::SiteAddress;
use crate::app::{App, DashboardState};
use crate::auth::client_address::ClientNetwork;
use crate::auth::{AccountId, Tier};

/// Visitor of a page, with the visitor's session if there is one.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) app: App,
    pub(crate) dashboard: Arc<DashboardState>,
    pub(crate) signed: Option<SignedInSession>,
    pub(crate) site: SiteAddress,
    pub(crate) example: ExampleCache,
    pub(crate) client: IpAddr,
    pub(crate) origin: SessionOrigin,
    /// Query string of the request, unchanged.
    pub(crate) query: String,
}

/// Session of a signed-in visitor, with the secret from the session cookie.
#[derive(Debug, Clone)]
pub(crate) struct SignedInSession {
    pub(crate) session: BrowserSession,
    pub(crate) secret: String,
}

/// Signed-in holder of an account.
#[derive(Debug, Clone)]
pub(crate) struct AccountHolder {
    pub(crate) visitor: Visitor,
    pub(crate) signed: SignedInSession,
}

impl FromRequestParts<App> for Visitor {
    type Rejection = PageError;

    /// Extracts the visitor of a public page. If the database does not reply, the visitor is treated as not signed in.
    async fn from_request_parts(parts: &mut Parts, app: &App) -> PageResult<Self> {
        let mut visitor = Self::unknown(parts, app)?;
        visitor.signed = run_within(VISITOR_LOOKUP_LIMIT, visitor.session(parts)).await.unwrap_or_default();
        Ok(visitor)
    }
}

impl Visitor {
    /// Extracts the visitor with the session. Fails if the database does not reply.
    pub(crate) async fn with_session(parts: &Parts, app: &App) -> PageResult<Self> {
        let mut visitor = Self::unknown(parts, app)?;
        visitor.signed = run_within(PAGE_DEADLINE, visitor.session(parts)).await?;
        Ok(visitor)
    }

    /// Creates a visitor who is not signed in. The session is not looked up.
    fn unknown(parts: &Parts, app: &App) -> PageResult<Self> {
        let caller = RequestContext::from_extensions(&parts.extensions).ok_or(PageError::NotFound)?;
        let (client, is_proxied) = (caller.client, caller.is_proxied);
        let dashboard = app.dashboard.clone().ok_or(PageError::NotFound)?;
        let example = parts.extensions.get::<ExampleCache>().cloned().ok_or(PageError::NotFound)?;
        let public = dashboard.settings.public_url.as_ref();
        let site = SiteAddress::from_request(&parts.headers, client, is_proxied, public);
        let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let (address, agent) = (client.to_string(), agent.unwrap_or_default().to_owned());
        let device = session_cookie::DEVICE.read(&parts.headers, site.is_local);
        let devices = ClientDevices::new(device.as_deref(), ClientNetwork::containing(client).0);
        let origin = SessionOrigin { address, agent, devices };
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self { app: app.clone(), dashboard, signed: None, site, example, client, origin, query })
    }

    async fn session(&self, parts: &Parts) -> PageResult<Option<SignedInSession>> {
        let Some(secret) = session_cookie::SESSION.read(&parts.headers, self.site.is_local) else {
            return Ok(None);
        };
        let session = sessions::find_session(&*self.dashboard.database_client().await?, &secret).await?;
        Ok(session.map(|session| SignedInSession { session, secret }))
    }

    /// Tier of the signed-in account; `None` without a session, or if the account cannot be read in time.
    pub(crate) async fn tier(&self) -> Option<Tier> {
        let email = &self.signed.as_ref()?.session.email;
        let find = async {
            let client = self.dashboard.database_client().await?;
            Ok::<_, PageError>(accounts::find_account(&client, email).await?.effective_tier)
        };
        run_within(VISITOR_LOOKUP_LIMIT, find).await.ok()
    }

    /// Visitor as a [`Viewer`], for the layout.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        self.signed.as_ref().map_or(Viewer::Visitor, |signed| Viewer::Holder(signed.holder()))
    }

    /// Renders a page with a form. The status is 422 if the page has an error message.
    pub(crate) fn render_form(
        &self,
        title: &str,
        section: Section,
        message: Option<&str>,
        body: &Markup,
    ) -> Response {
        let status = if message.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        (status, self.render_page(title, section, body)).into_response()
    }

    /// Renders a page of the site.
    pub(crate) fn render_page(&self, title: &str, section: Section, body: &Markup) -> Response {
        let viewer = self.viewer();
        let has_market = has_market_pages(&self.app, viewer);
        layout::render_page(title, viewer, section, has_market, body).into_response()
    }
}

/// True if the viewer may open the market pages (pages with market data, such as the screener).
pub(crate) fn has_market_pages(app: &App, viewer: Viewer<'_>) -> bool {
    match app.settings.dashboard.pages {
        MarketPages::Off => false,
        MarketPages::SignedIn => matches!(viewer, Viewer::Holder(_)),
        MarketPages::Public => true,
    }
}

/// Path and query of a request.
pub(crate) fn target_of(parts: &Parts) -> String {
    parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned()
}

impl FromRequestParts<App> for AccountHolder {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> PageResult<Self> {
        let visitor = Visitor::with_session(parts, app).await?;
        let signed = visitor.signed.clone().ok_or_else(|| PageError::SignIn(target_of(parts)))?;
        Ok(Self { visitor, signed })
    }
}

impl SignedInSession {
    /// Email address and session secret of the holder, for the page layout.
    pub(crate) fn holder(&self) -> SignedInHolder<'_> {
        SignedInHolder { email: &self.session.email, secret: &self.secret }
    }
}

impl AccountHolder {
    /// Renders a page of the dashboard.
    pub(crate) fn render_page(&self, title: &str, section: Section, body: &Markup) -> Response {
        self.visitor.render_page(title, section, body)
    }

    /// True if the holder may open the market pages.
    pub(crate) fn has_market(&self) -> bool {
        has_market_pages(&self.visitor.app, self.visitor.viewer())
    }

    /// Hidden CSRF field of the dashboard's forms.
    pub(crate) fn csrf_field(&self) -> Markup {
        layout::csrf_field(&self.signed.secret)
    }

    pub(crate) async fn database_client(&self) -> PageResult<Object> {
        Ok(self.visitor.dashboard.database_client().await?)
    }

    /// This holder as the actor of account changes. The audit log records the actor of each change.
    pub(crate) fn actor(&self) -> AccountActor<'static> {
        AccountActor::Holder(self.signed.session.account_id)
    }

    pub(crate) fn account_id(&self) -> AccountId {
        self.signed.session.account_id
    }

    pub(crate) fn email(&self) -> &str {
        &self.signed.session.email
    }
}
