//! Responses to expensive requests. A request waits for a permit. Then its response is rendered on
//! a low-priority thread. A long JSON response is streamed: it is sent while it is rendered.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures::future::LocalBoxFuture;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::pending_response::{CacheHandle, PendingResponse};
use super::response_writer::{FinishedBody, ResponseWriter};
use crate::app::state::App;
use crate::concurrency::limiter::{KeySlot, Permit};
use crate::concurrency::low_priority::{LowPriorityError, spawn_low_priority};
use crate::connection::request_id::current_request_id;
use crate::error::ApiError;
use crate::read::ServedGeneration;
use crate::render::body_channel::{BodyReceiver, body_channel};

type WriteOutcome = Result<FinishedBody, ApiError>;

/// Handler that reads from a generation and writes the response.
type WriteHandler =
    Box<dyn FnOnce(Arc<ServedGeneration>, ResponseWriter) -> LocalBoxFuture<'static, WriteOutcome> + Send>;

/// Runs `write` and responds. JSON above 1 MiB is sent while it is rendered, if the client can detect a truncated
/// response. Any other body is sent only after it is complete.
pub(super) async fn respond(asked: PendingResponse, write: WriteHandler) -> Result<Response, ApiError> {
    if let Some(kept) = asked.cached_response() {
        return Ok(kept);
    }
    let Permit { work, slot } = asked.app.expensive_limiter.acquire(asked.account_id).await?;
    let slot = Arc::new(slot);
    // Another request may have cached the same response while this one waited.
    if let Some(kept) = asked.cached_response() {
        return Ok(kept);
    }
    let PendingResponse { handle, app, generation, accepts_streaming, .. } = asked;
    let expensive = generation.expensive_generation();
    let (long_signal, mut long_version) = oneshot::channel();
    let (sender, reader) = body_channel(Arc::clone(&slot));
    let writer = ResponseWriter::new(sender, accepts_streaming.then_some(long_signal));
    let limit = app.settings.request_timeout();
    let writing = async move || {
        let late = |_| ApiError::Unavailable("the request took too long".to_owned());
        let generation = Arc::clone(&expensive);
        let writing = generation.run_while_responsive(write(expensive, writer));
        tokio::time::timeout(limit, writing).await.map_err(late)?
    };
    let mut finished = write_at_low_priority(writing, work, slot)?;
    let outcome = tokio::select! {
        biased;
        outcome = &mut finished => outcome,
        Ok(version) = &mut long_version => {
            generation.record_returned_version(version);
            return Ok(handle.respond(&handle.etag(&version), None, || Body::new(reader)));
        }
    };
    let panicked = |_| ApiError::Internal(anyhow::anyhow!("the handler panicked"));
    let written = outcome.map_err(panicked)??;
    generation.record_returned_version(written.version);
    Ok(respond_complete(&app, &handle, &written, reader))
}

/// Runs a handler on a low-priority thread, so that the threads of the runtime stay free. The handler runs to its end,
/// even if the client disconnects.
fn write_at_low_priority<F: Future<Output = WriteOutcome>>(
    writing: impl FnOnce() -> F + Send + 'static,
    work: OwnedSemaphorePermit,
    slot: Arc<KeySlot>,
) -> Result<oneshot::Receiver<WriteOutcome>, LowPriorityError> {
    let (finish, finished) = oneshot::channel();
    let (runtime, id) = (tokio::runtime::Handle::current(), current_request_id());
    spawn_low_priority(move || {
        let outcome = runtime.block_on(writing());
        drop((work, slot));
        // If the response is already being sent, nothing receives the outcome. An error is then only logged.
        match finish.send(outcome) {
            Ok(()) | Err(Ok(_) | Err(ApiError::ClientDisconnected(_))) => {}
            Err(Err(error)) => {
                tracing::error!(request_id = id.as_str(), %error, "a streamed response was truncated")
            }
        }
    })?;
    Ok(finished)
}

/// Responds with a finished body, and caches it unless a part is already compressed.
fn respond_complete(
    app: &App,
    handle: &CacheHandle,
    written: &FinishedBody,
    reader: BodyReceiver<Arc<KeySlot>>,
) -> Response {
    let FinishedBody { version, next_cursor } = written;
    if let Some(body) = reader.complete_body() {
        app.response_cache
            .insert(handle.key.clone(), handle.to_cached(body, version, next_cursor.as_deref()));
    }
    let link = handle.link(next_cursor.as_deref());
    handle.respond(&handle.etag(version), link.as_ref(), || Body::new(reader))
}
