//! Responses of handlers: cached or rendered, single resource or page, 304 Not Modified, headers.
//!
//! A handler's own code ends at the boxes that it is put in here; whatever comes after is the same for all of them, and
//! compiled once.
//!
//! Invariant: a body and the version it names come from the same snapshot.

pub(crate) mod access;
mod context;
mod long;
mod named;
mod outlet;
pub(crate) mod required_tier;
mod response;
mod short;

pub(crate) use access::{Access, Showcase};
pub(crate) use context::{Context, Rendered};
pub(crate) use outlet::{Body, Outlet, Written};
pub(crate) use required_tier::{Free, Gate, Professional, Starter};

use axum::response::{IntoResponse, Response};
use futures::future::LocalBoxFuture;

use crate::error::ApiError;
use crate::parameters::Parameters;
use named::asked;

impl<G: Gate, P: Parameters> Access<G, P> {
    /// Answers from memory, or with what `render` renders, or with 304 when the client has it already.
    pub(crate) async fn answer<F>(self, render: impl FnOnce(Context<P>) -> F + Send + 'static) -> Response
    where
        F: Future<Output = Result<Rendered, ApiError>> + Send + 'static,
    {
        if self.is_costly {
            let write = async |context, outlet| outlet_all(outlet, render(context).await?);
            return Box::pin(self.answer_in_parts(write)).await;
        }
        match asked(self) {
            Ok((asked, context)) => match asked.kept() {
                Some(kept) => kept,
                // On the heap, so that an answer from memory does not move the room for making one.
                None => Box::pin(short::answer(asked, Box::pin(render(context)))).await,
            },
            Err(response) => response,
        }
    }

    /// Answers with what `write` writes as it reads; for answers that may be long. The first part that is long decides
    /// that the answer is sent in parts: what fails later breaks it off.
    pub(crate) async fn answer_in_parts<F>(
        self,
        write: impl FnOnce(Context<P>, Outlet) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Result<Written, ApiError>> + 'static,
    {
        match asked(self) {
            Ok((asked, mut context)) => {
                let write = Box::new(move |generation, outlet| -> LocalBoxFuture<'static, _> {
                    context.generation = generation;
                    Box::pin(write(context, outlet))
                });
                long::answer(asked, write).await.unwrap_or_else(IntoResponse::into_response)
            }
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
