//! Posted HTML forms: extraction from the request, CSRF check and reading of fields. Notices that a page shows after an
//! action.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Multipart, Request};
use axum::http::header;
use axum::http::request::Parts;
use market::text_enum;
use secrecy::SecretString;

use super::error::{PageError, PageResult};
use super::session_cookie;
use super::visitor::{AccountHolder, Visitor};
use crate::app::App;

/// Fields of a form.
#[derive(Clone)]
pub(crate) struct Form(Vec<(String, String)>);

/// Form that any visitor may send, signed in or not.
pub(crate) struct PublicForm {
    pub(crate) visitor: Visitor,
    pub(crate) form: Form,
}

/// Form that a signed-in holder sent. The CSRF token in the form was verified: it belongs to the holder's session.
pub(crate) struct AuthenticatedForm {
    pub(crate) holder: AccountHolder,
    pub(crate) form: Form,
}

impl Form {
    /// Reads a query string, or the body of a submitted form.
    pub(crate) fn read(encoded: impl AsRef<[u8]>) -> Self {
        Self(form_urlencoded::parse(encoded.as_ref()).into_owned().collect())
    }

    /// Reads a form that may have a file. An error is a message for the reader.
    pub(crate) async fn from_upload(request: Request, app: &App) -> Result<Self, String> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("multipart/form-data")) {
            let body = Bytes::from_request(request, app).await.map_err(|error| error.body_text())?;
            return Ok(Self::read(body));
        }
        let parts = Multipart::from_request(request, app).await;
        let mut parts = parts.map_err(|error| error.body_text())?;
        let mut fields = Vec::new();
        while let Some(part) = parts.next_field().await.map_err(|error| error.body_text())? {
            let name = part.name().unwrap_or_default().to_owned();
            let bytes = part.bytes().await.map_err(|error| error.body_text())?;
            fields.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
        Ok(Self(fields))
    }

    /// Text of a field without surrounding spaces; empty if the field is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.value(name).trim()
    }

    /// Content of the field `file` if it is not empty, otherwise of the field `text`, unchanged.
    pub(crate) fn file_or_text(&self) -> &str {
        let is_empty = self.text("file").is_empty();
        self.value(if is_empty { "text" } else { "file" })
    }

    /// Value of a secret field, unchanged. Its debug output is redacted.
    pub(crate) fn secret(&self, name: &str) -> SecretString {
        self.value(name).into()
    }

    fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
    }
}

impl FromRequest<App> for PublicForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &App) -> PageResult<Self> {
        let (parts, body) = request.into_parts();
        let visitor = Visitor::with_session(&parts, app).await?;
        Ok(Self { visitor, form: read(parts, body, app).await? })
    }
}

impl FromRequest<App> for AuthenticatedForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &App) -> PageResult<Self> {
        let (mut parts, body) = request.into_parts();
        let holder = AccountHolder::from_request_parts(&mut parts, app).await?;
        let form = read(parts, body, app).await?;
        match session_cookie::is_csrf_token(&holder.signed.secret, form.text("token")) {
            true => Ok(Self { holder, form }),
            false => Err(PageError::Forged),
        }
    }
}

async fn read(parts: Parts, body: Body, app: &App) -> PageResult<Form> {
    let body = Bytes::from_request(Request::from_parts(parts, body), app).await;
    Ok(Form::read(body.map_err(|_| PageError::TooLong)?))
}

text_enum! {
    /// Action that has just been completed.
    pub enum PageNotice {
        KeyDeleted = "key-deleted",
        PortfolioSaved = "portfolio-saved",
        PortfolioDeleted = "portfolio-deleted",
        Upgraded = "upgraded",
        Downgraded = "downgraded",
        Cancelled = "cancelled",
        Asked = "asked",
        SessionEnded = "session-ended",
        PasswordChanged = "password-changed",
        AddressChanged = "address-changed",
        SignedUp = "signed-up",
        AccountDeleted = "account-deleted",
    }
}

impl PageNotice {
    /// Message that the parameter `done` in a query string selects; `None` if `done` is absent or unknown.
    pub(crate) fn message_for_query(query: &str) -> Option<&'static str> {
        Some(match Self::find(query)? {
            Self::KeyDeleted => "The key is deleted. Calls with it are refused from now on.",
            Self::PortfolioSaved => "The portfolio is saved.",
            Self::PortfolioDeleted => "The portfolio is deleted, and its addresses have ended.",
            Self::Upgraded => "The plan is changed. The next call has the new limits.",
            Self::Downgraded => "The change is saved. It applies after the paid month.",
            Self::Cancelled => "The plan is cancelled. It applies until the paid month ends.",
            Self::Asked => "The operator was asked. The plan changes when they agree.",
            Self::SessionEnded => "The session is ended.",
            Self::PasswordChanged => "The password is changed, and every other session is ended.",
            Self::AddressChanged => "The address is changed. Sign in with it from now on.",
            Self::SignedUp => "The account is ready, and you are signed in.",
            Self::AccountDeleted => "The account is deleted. Calls with its keys are refused from now on.",
        })
    }

    /// Notice that the parameter `done` in a query string selects; `None` if `done` is absent or unknown.
    pub(crate) fn find(query: &str) -> Option<Self> {
        Form::read(query).text("done").parse().ok()
    }

    /// Adds the query parameter `done` with this notice to the path of a page.
    pub(crate) fn add_to_path(self, path: &str) -> String {
        format!("{path}?done={self}")
    }
}
