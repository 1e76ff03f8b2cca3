//! Responses to cheap requests. The whole body is rendered before it is sent. Concurrent identical requests share one
//! rendering.

use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;

use super::context::RenderedBody;
use super::pending_response::PendingResponse;
use crate::error::ApiError;

/// Responds with the result of `rendering`.
pub(super) async fn respond(
    PendingResponse { handle, app, generation, .. }: PendingResponse,
    rendering: BoxFuture<'static, Result<RenderedBody, ApiError>>,
) -> Response {
    let fill = async {
        let rendered = generation.run_while_responsive(rendering).await?;
        generation.record_returned_version(rendered.version);
        Ok::<_, ApiError>(handle.to_cached(rendered.body, &rendered.version, rendered.next_cursor.as_deref()))
    };
    let filled = app.response_cache.get_or_render(&handle.key, fill);
    match tokio::time::timeout(app.settings.request_timeout(), filled).await {
        Ok(Ok(answer)) => handle.respond_cached(&answer),
        Ok(Err(error)) => error.into_response(),
        Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
    }
}
