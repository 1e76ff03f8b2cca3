//! HTTP responses of the handlers: cache look-up, 304 Not Modified, headers and streaming.
//!
//! Invariant: a body and its data version come from the same snapshot.

pub(crate) mod access;
mod context;
mod response;
mod streamed;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use crate::error::ApiError;
use crate::parameters::Parameters;
use response::prepare_handler;

pub(crate) use access::{
    Access, Free, InternalRequest, Keyless, Professional, RequiredTier, Starter, quota_exceeded,
};
pub(crate) use context::{
    HandlerContext, MAX_BODY_BYTES, RenderedBody, RequestBody, SelectedPage, origin_of, read_body,
    render_page,
};
pub(crate) use response::private_response;
pub(crate) use streamed::{BodyWriter, FinishedBody, ResponseWriter};

impl<G: RequiredTier, P: Parameters> Access<G, P> {
    /// Responds with 304 Not Modified, with a cached body, or with the body that `render` returns.
    ///
    /// Only rendering is asynchronous. It is boxed, so that a cache hit does not reserve the space for it.
    pub(crate) fn respond<F>(
        mut self,
        render: impl FnOnce(HandlerContext<P>) -> F + Send + 'static,
    ) -> impl Future<Output = Response>
    where
        F: Future<Output = Result<RenderedBody, ApiError>> + Send + 'static,
    {
        let Some(in_progress) = self.ordinary.take() else {
            let write = async |context, outlet| write_rendered(outlet, render(context).await?);
            return self.respond_streaming(write).boxed().right_future();
        };
        let (asked, context) = match prepare_handler(self) {
            Ok(prepared) => prepared,
            Err(response) => return ready(response).left_future(),
        };
        if let Some(kept) = asked.cached_response() {
            return ready(kept).left_future();
        }
        let rendered = asked.respond_buffered(Box::pin(render(context)));
        rendered.inspect(move |_| drop(in_progress)).boxed().right_future()
    }

    /// Reads the body of the request, and responds with the body that `render` returns.
    pub(crate) async fn respond_to_body<F>(
        self,
        request: Request,
        render: impl FnOnce(HandlerContext<P>, RequestBody) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Result<RenderedBody, ApiError>> + 'static,
    {
        match RequestBody::read(request, &self.app).await {
            Ok(body) => {
                let write = async |context, outlet| write_rendered(outlet, render(context, body).await?);
                self.respond_streaming(write).await
            }
            Err(error) => error.into_response(),
        }
    }

    /// Responds with the body that `write` produces. JSON above 1 MiB is streamed (sent while it is rendered) if the
    /// client can detect a truncated response. An error after the start of the stream truncates the response.
    pub(crate) async fn respond_streaming<F>(
        self,
        write: impl FnOnce(HandlerContext<P>, ResponseWriter) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Result<FinishedBody, ApiError>> + 'static,
    {
        match prepare_handler(self) {
            Ok((asked, mut context)) => {
                // Boxed, so that `streamed` is compiled once and not once per handler.
                let write = Box::new(move |generation, outlet| -> LocalBoxFuture<'static, _> {
                    context.generation = generation;
                    Box::pin(write(context, outlet))
                });
                streamed::respond(asked, write).await.unwrap_or_else(IntoResponse::into_response)
            }
            Err(response) => response,
        }
    }
}

/// Writes a response from a completely rendered body.
fn write_rendered(outlet: ResponseWriter, rendered: RenderedBody) -> Result<FinishedBody, ApiError> {
    let mut body = outlet.begin(rendered.version);
    body.write(rendered.body)?;
    Ok(body.finish(rendered.next_cursor)?)
}
