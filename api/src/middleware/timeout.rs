//! Deadline and panic handler of a request. The layers of tower-http send an empty body after a timeout, and box every
//! response body again.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures::FutureExt;

use crate::error::ApiError;

/// Runs a handler until the deadline. After a timeout the response is 503, after a panic 500.
pub(super) fn with_deadline(
    deadline: Duration,
    handler: impl Future<Output = Result<Response, Infallible>>,
) -> impl Future<Output = Response> {
    let running = AssertUnwindSafe(handler).catch_unwind();
    tokio::time::timeout(deadline, running).map(|outcome| match outcome {
        Ok(Ok(Ok(response))) => response,
        Ok(Err(_)) => ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response(),
        Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
    })
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_panic_is_a_500_and_a_timeout_a_503() {
        let answered = with_deadline(LONG, async { Ok(Response::default()) }).await;
        assert_eq!(answered.status(), StatusCode::OK);
        let panicked = with_deadline(LONG, async { panic!("of the test") }).await;
        assert_eq!(panicked.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let late = with_deadline(Duration::ZERO, std::future::pending()).await;
        assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
