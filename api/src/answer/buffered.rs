//! Responses to cheap requests: rendered whole, and once for concurrent identical requests.

use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;

use super::context::Rendered;
use super::named::Asked;
use crate::error::ApiError;

/// Responds with the result of `rendering`.
pub(super) async fn answer(
    Asked { named, app, generation, .. }: Asked,
    rendering: BoxFuture<'static, Result<Rendered, ApiError>>,
) -> Response {
    let fill = async {
        let rendered = rendering.await?;
        generation.observe(rendered.version);
        Ok::<_, ApiError>(named.answer(rendered.body, &rendered.version, rendered.next_cursor.as_deref()))
    };
    let filled = app.answers.fill(&named.key, fill);
    match tokio::time::timeout(app.settings.request_timeout(), filled).await {
        Ok(Ok(answer)) => named.whole(&answer),
        Ok(Err(error)) => error.into_response(),
        Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
    }
}
