//! Responses to expensive requests. A request waits in the fair queue for a permit. Then its response is rendered on
//! its own thread. A long JSON response is streamed: it is sent while it is rendered.

use std::sync::Arc;
use std::{io, thread};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use tokio::sync::oneshot;

use super::pending_response::{CacheHandle, PendingResponse};
use crate::app::state::App;
use crate::auth::ids::AccountId;
use crate::concurrency::cpu_pool::lower_thread_priority;
use crate::concurrency::fair_queue::{KeySlot, Permit, WorkPermit};
use crate::connection::request_id::current_request_id;
use crate::error::ApiError;
use crate::read::{DataVersion, ServedGeneration};
use crate::render::body_channel::{BodyReceiver, BodySender, Disconnected, MAX_UNCOMPRESSED, body_channel};

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
    let Permit { work, slot } = asked.app.fair_queue.acquire(asked.account_id).await?;
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
    let mut finished = on_own_thread(writing, work, slot).map_err(|error| {
        ApiError::Unavailable(format!("cannot start a thread for an expensive response: {error}"))
    })?;
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

/// Runs a handler on its own low-priority thread, so that the threads of the runtime stay free. The handler runs to its
/// end, even if the client disconnects.
fn on_own_thread<F: Future<Output = WriteOutcome>>(
    writing: impl FnOnce() -> F + Send + 'static,
    work: WorkPermit<AccountId>,
    slot: Arc<KeySlot<AccountId>>,
) -> io::Result<oneshot::Receiver<WriteOutcome>> {
    let (finish, finished) = oneshot::channel();
    let (runtime, id) = (tokio::runtime::Handle::current(), current_request_id());
    thread::Builder::new().name("costly answer".to_owned()).spawn(move || {
        lower_thread_priority();
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
    reader: BodyReceiver<Arc<KeySlot<AccountId>>>,
) -> Response {
    let FinishedBody { version, next_cursor } = written;
    if let Some(body) = reader.complete_body() {
        app.response_cache
            .insert(handle.key.clone(), handle.to_cached(body, version, next_cursor.as_deref()));
    }
    let link = handle.link(next_cursor.as_deref());
    handle.respond(&handle.etag(version), link.as_ref(), || Body::new(reader))
}

/// Writer of a response that has not started. Writing starts when the data version is known.
#[derive(Debug)]
pub(crate) struct ResponseWriter {
    sender: BodySender,
    /// Channel to the task that sends the response. When the body exceeds [`MAX_UNCOMPRESSED`] bytes, the task receives
    /// the data version and starts streaming. `None` if the response must not be streamed.
    long_signal: Option<oneshot::Sender<DataVersion>>,
}

/// Writer of a response that has started.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    sender: BodySender,
    version: DataVersion,
    long_signal: Option<oneshot::Sender<DataVersion>>,
    /// Number of bytes written so far.
    length: usize,
}

/// Completely written response.
#[derive(Debug)]
pub(crate) struct FinishedBody {
    pub(super) version: DataVersion,
    pub(super) next_cursor: Option<String>,
}

impl ResponseWriter {
    /// Creates a writer to a body channel. Without `long_signal`, the response is sent only after it is finished.
    pub(super) fn new(sender: BodySender, long_signal: Option<oneshot::Sender<DataVersion>>) -> Self {
        Self { sender, long_signal }
    }

    /// Starts a response that is rendered from this data version.
    pub(crate) fn begin(self, version: DataVersion) -> BodyWriter {
        BodyWriter { sender: self.sender, version, long_signal: self.long_signal, length: 0 }
    }
}

impl BodyWriter {
    pub(crate) fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), Disconnected> {
        let bytes = bytes.into();
        self.length += bytes.len();
        // The task that responds is notified before the write, so that the client reads while the body is written.
        if self.length > MAX_UNCOMPRESSED
            && let Some(long_signal) = self.long_signal.take()
        {
            long_signal.send(self.version).map_err(|_| Disconnected)?;
        }
        self.sender.write(bytes)
    }

    /// Finishes the response. `next_cursor` is `None` on the last page.
    pub(crate) fn finish(self, next_cursor: Option<String>) -> Result<FinishedBody, Disconnected> {
        self.sender.finish()?;
        Ok(FinishedBody { version: self.version, next_cursor })
    }
}
