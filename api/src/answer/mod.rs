//! How an answer leaves: from memory or made anew, one resource or a page, 304 when the client has it, with its headers.
//!
//! Invariant: a body and the version it names come from the same snapshot.

mod context;
mod long;
mod named;
mod outlet;
mod response;

pub(crate) use context::{Context, Rendered};
pub(crate) use outlet::{Body, Outlet, Written};

use axum::response::{IntoResponse, Response};

use crate::access::{Access, Gate};
use crate::error::ApiError;
use crate::parameters::Parameters;
use named::{Asked, asked};

impl<G: Gate, P: Parameters> Access<G, P> {
    /// Answers from memory, or with what `render` renders, or with 304 when the client has it already.
    pub(crate) async fn answer<F>(self, render: impl FnOnce(Context<P>) -> F + Send + 'static) -> Response
    where
        F: Future<Output = Result<Rendered, ApiError>> + Send + 'static,
    {
        if self.is_costly {
            let write = async |context, outlet| outlet_all(outlet, render(context).await?);
            return self.answer_in_parts(write).await;
        }
        let Asked { named, context, .. } = match asked(self) {
            Ok(asked) => asked,
            Err(response) => return response,
        };
        let app = context.app.clone();
        let generation = context.generation.clone();
        let fill = async {
            // On the heap, and only where it is needed: it is large, and passed through several others.
            let rendered = Box::pin(render(context)).await?;
            generation.observe(rendered.version);
            Ok::<_, ApiError>(named.answer(rendered.body, &rendered.version, rendered.next_cursor.as_deref()))
        };
        let filled = app.answers.get(named.key, fill);
        match tokio::time::timeout(app.settings.request_timeout(), filled).await {
            Ok(Ok(answer)) => named.whole(&answer),
            Ok(Err(error)) => error.response(),
            Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
        }
    }

    /// Answers with what `write` writes as it reads; for answers that may be long. The first part that is long decides
    /// that the answer is sent in parts: what fails later breaks it off.
    pub(crate) async fn answer_in_parts<F>(
        self,
        write: impl FnOnce(Context<P>, Outlet) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Result<Written, ApiError>>,
    {
        match asked(self) {
            Ok(asked) => long::answer(asked, write).await.unwrap_or_else(IntoResponse::into_response),
            Err(response) => response,
        }
    }
}

/// Writes an answer that was rendered whole.
fn outlet_all(outlet: Outlet, rendered: Rendered) -> Result<Written, ApiError> {
    let mut body = outlet.begin(rendered.version);
    body.write(rendered.body)?;
    Ok(body.finish(rendered.next_cursor)?)
}
