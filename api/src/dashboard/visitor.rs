//! Who a page is for: anybody, or the holder of an account who is signed in.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use deadpool_postgres::Object;
use maud::Markup;

use super::cookie;
use super::error::PageError;
use super::example::Example;
use super::layout::{self, Name, Section};
use super::site::Site;
use super::state::Dashboard;
use crate::access::Caller;
use crate::account::Party;
use crate::account::sessions::{self, Origin, Session};
use crate::app::App;

/// Anybody.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) app: App,
    pub(crate) dashboard: Arc<Dashboard>,
    pub(crate) signed: Option<Signed>,
    pub(crate) site: Site,
    pub(crate) example: Example,
    pub(crate) client: IpAddr,
    pub(crate) origin: Origin,
    /// The query string as sent.
    pub(crate) query: String,
}

/// A session, with what its cookie holds.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) session: Session,
    pub(crate) secret: String,
}

/// The holder of an account who is signed in.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) visitor: Visitor,
    pub(crate) signed: Signed,
}

impl FromRequestParts<App> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, PageError> {
        let caller = Caller::of(&parts.extensions).ok_or(PageError::NotFound)?;
        let (client, is_proxied) = (caller.client, caller.is_proxied);
        let dashboard = app.dashboard.clone().ok_or(PageError::NotFound)?;
        let example = parts.extensions.get::<Example>().cloned().ok_or(PageError::NotFound)?;
        let site = Site::of(&parts.headers, client, is_proxied, dashboard.settings.public_url.as_ref());
        let signed = match cookie::read(&parts.headers, site.is_local) {
            Some(secret) => {
                let session = sessions::find(&*dashboard.client().await?, &secret).await?;
                session.map(|session| Signed { session, secret })
            }
            None => None,
        };
        let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let origin = Origin { address: client.to_string(), agent: agent.unwrap_or_default().to_owned() };
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self { app: app.clone(), dashboard, signed, site, example, client, origin, query })
    }
}

impl FromRequestParts<App> for Holder {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, PageError> {
        let visitor = Visitor::from_request_parts(parts, app).await?;
        match visitor.signed.clone() {
            Some(signed) => Ok(Self { visitor, signed }),
            None => Err(PageError::SignIn(parts.uri.path().to_owned())),
        }
    }
}

impl Signed {
    /// As pages show it.
    pub(crate) fn name(&self) -> Name<'_> {
        Name { email: &self.session.email, secret: &self.secret }
    }
}

impl Visitor {
    /// A page of the site.
    pub(crate) fn page(&self, title: &str, section: Section, body: &Markup) -> Response {
        let name = self.signed.as_ref().map(Signed::name);
        layout::page(title, name.as_ref(), section, body).into_response()
    }
}

impl Holder {
    /// A page of the dashboard.
    pub(crate) fn page(&self, title: &str, section: Section, body: &Markup) -> Response {
        self.visitor.page(title, section, body)
    }

    /// The hidden field of the dashboard's forms.
    pub(crate) fn token(&self) -> Markup {
        layout::token(&self.signed.secret)
    }

    pub(crate) async fn client(&self) -> Result<Object, PageError> {
        Ok(self.visitor.dashboard.client().await?)
    }

    /// The holder as the one who changes the account.
    pub(crate) fn party(&self) -> Party<'static> {
        Party::Holder(self.signed.session.account)
    }

    pub(crate) fn account(&self) -> i64 {
        self.signed.session.account
    }

    pub(crate) fn email(&self) -> &str {
        &self.signed.session.email
    }
}
