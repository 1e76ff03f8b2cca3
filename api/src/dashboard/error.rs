//! Errors of dashboard pages, rendered as pages, and the deadlines of pages. A frozen database server does not enforce its
//! statement timeout, so the API process enforces the deadlines.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};
use deadpool_postgres::PoolError;
use maud::html;

use super::view::layout::{self, Section, Viewer};
use crate::account::AccountError;
use crate::account::password::PasswordError;
use crate::app::login_throttle::AttemptError;
use crate::connection::current_request_id;

/// Number of seconds in the `Retry-After` header of the response if the queue of password hashes is full.
const BUSY: u64 = 5;

/// Result of a page handler, or of a function that it calls. The default type of the value is a response.
pub(crate) type PageResult<T = Response> = Result<T, PageError>;

/// Errors of a page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// Sign-in is required. The value is the requested path and query.
    #[error("the request has no session")]
    SignIn(String),
    #[error("page not found")]
    NotFound,
    /// The form does not come from a page of this session.
    #[error("the form was not sent from a page of this session")]
    Forged,
    #[error("the form is too long")]
    TooLong,
    /// The request breaks a rule, for example with a password that is too short. The value is the message for the
    /// visitor.
    #[error("{0}")]
    Refused(String),
    /// Too many attempts. The value is the wait in seconds.
    #[error("too many attempts")]
    TooMany(u64),
    /// The queue of password hashes is full.
    #[error("too many sign-ins at once")]
    Busy,
    #[error("{0}")]
    Unavailable(String),
}

impl PageError {
    /// Status and title of the error page, and advice to the visitor.
    fn describe(&self) -> (StatusCode, &'static str, String) {
        match self {
            Self::NotFound | Self::SignIn(_) => (
                StatusCode::NOT_FOUND,
                "Nothing is here",
                "The address may be mistyped, or the page was removed.".to_owned(),
            ),
            Self::Forged => (
                StatusCode::FORBIDDEN,
                "That form is out of date",
                "It was not sent from a page of this session. Open the page again and repeat it there."
                    .to_owned(),
            ),
            Self::TooLong => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "That was too long",
                "Go back and shorten the text.".to_owned(),
            ),
            Self::Refused(sentence) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "That did not work", layout::to_sentence(sentence))
            }
            Self::TooMany(seconds) => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too many attempts",
                format!("Wait {seconds} seconds, then try again. Existing sessions stay signed in."),
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Not now",
                format!("Too many sign-ins at once. Wait {BUSY} seconds, then try again."),
            ),
            Self::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Not now",
                format!(
                    "The service cannot do this now; try again shortly. Request {}.",
                    current_request_id()
                ),
            ),
        }
    }
}

/// Text of an error page, stored as a response extension. A middleware uses it to render the page again with a search
/// form.
#[derive(Debug, Clone)]
pub(super) struct ErrorText {
    title: &'static str,
    advice: String,
}

impl ErrorText {
    /// Renders the page, with the search form if the site has market pages.
    pub(super) fn render(&self, has_market: bool) -> Html<String> {
        let body = html! {
            h1 { (self.title) }
            p { (self.advice) }
            p { a.button href="/dashboard" { "To the dashboard" } }
        };
        layout::render_page(self.title, Viewer::Visitor, Section::Other, has_market, &body)
    }
}

/// Converts an error in the visitor's input to the message for the form. A database error is returned as an error.
pub(crate) fn to_form_message(error: AccountError) -> Result<String, PageError> {
    match error {
        AccountError::Database(_) => Err(error.into()),
        error => Ok(layout::to_sentence(&error.to_string())),
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        if let Self::SignIn(path) = &self {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", path).finish();
            return Redirect::to(&format!("/sign-in?{query}")).into_response();
        }
        if let Self::Unavailable(cause) = &self {
            tracing::warn!(request_id = current_request_id().as_str(), %cause, "a dashboard page is unavailable");
        }
        let (status, title, advice) = self.describe();
        let text = ErrorText { title, advice };
        let mut response = (status, text.render(false)).into_response();
        response.extensions_mut().insert(text);
        let wait = match self {
            Self::TooMany(seconds) => Some(seconds),
            Self::Busy => Some(BUSY),
            _ => None,
        };
        if let Some(seconds) = wait {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<AccountError> for PageError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Database(_) => Self::Unavailable(error.to_string()),
            error => Self::Refused(error.to_string()),
        }
    }
}

impl From<PoolError> for PageError {
    fn from(error: PoolError) -> Self {
        Self::Unavailable(store::db::error_chain(&error))
    }
}

impl From<PasswordError> for PageError {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Busy => Self::Busy,
            error => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<AttemptError> for PageError {
    fn from(error: AttemptError) -> Self {
        match error {
            AttemptError::TooMany(seconds) => Self::TooMany(seconds),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

/// Maximum time for the database work of a page.
pub(crate) const PAGE_DEADLINE: Duration = Duration::from_secs(4);
/// Maximum time to look up the reader's account on a public page. If the look-up takes longer, the page treats the
/// reader as not signed in.
pub(crate) const VISITOR_LOOKUP_LIMIT: Duration = Duration::from_millis(300);
/// Maximum time of a request with a password: 20 s in the throttle, 15 s in the hashing queue, 4 s for the rest.
pub(crate) const PASSWORD_PAGE_DEADLINE: Duration = Duration::from_secs(39);

/// Runs database work with a time limit.
pub(crate) async fn run_within<T, E>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> PageResult<T>
where
    PageError: From<E>,
{
    match tokio::time::timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(too_slow(limit)),
    }
}

/// Middleware that sets the deadline of a page.
pub(crate) async fn limit_page_time(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let response = tokio::time::timeout(limit, next.run(request)).await;
    response.unwrap_or_else(|_| too_slow(limit).into_response())
}

fn too_slow(limit: Duration) -> PageError {
    PageError::Unavailable(format!("the database did not reply within {} ms", limit.as_millis()))
}
