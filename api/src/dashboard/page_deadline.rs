//! Deadlines of pages, enforced by the API process. A frozen database server does not enforce its statement timeout.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{PageError, PageResult};

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
