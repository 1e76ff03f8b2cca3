//! Responses of handlers: cached or rendered, single resource or page, 304 Not Modified, headers.
//!
//! Handlers box their futures here. The code behind the boxes is shared by all handlers and compiled once.
//!
//! Invariant: a body and its version come from the same snapshot.

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
    /// Responds from the cache, with the result of `render`, or with 304 Not Modified.
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
                // Boxed, so that a cache hit does not reserve the space for rendering.
                None => Box::pin(short::answer(asked, Box::pin(render(context)))).await,
            },
            Err(response) => response,
        }
    }

    /// Responds with a body that `write` streams. The first long part starts the streaming, and a later error truncates
    /// the response.
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

/// Writes a fully rendered response.
fn outlet_all(outlet: Outlet, rendered: Rendered) -> Result<Written, ApiError> {
    let mut body = outlet.begin(rendered.version);
    body.write(rendered.body)?;
    Ok(body.finish(rendered.next_cursor)?)
}
