//! Responses to expensive requests. A request waits for a permit. Then its response is rendered on a low-priority thread.
//! A long JSON response is streamed: it is sent while it is rendered.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::response::{PendingResponse, explain_unknown_symbol};
use crate::concurrency::limiter::Permit;
use crate::concurrency::spawn_response;
use crate::connection::{RequestId, current_request_id};
use crate::error::ApiError;
use crate::read::{DataVersion, ServedGeneration};
use crate::render::body_channel::{
    BodyReceiver, BodySender, Disconnected, SEGMENT, body_channel, guard_body,
};

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
    // Another request may have cached the same response while this one waited.
    if let Some(kept) = asked.cached_response() {
        return Ok(kept);
    }
    let PendingResponse { handle, app, generation, accepts_streaming, .. } = asked;
    let expensive = generation.expensive_generation();
    let (long, long_body) = oneshot::channel();
    let (limit, runtime) = (app.settings.request_timeout, tokio::runtime::Handle::current());
    let slot = Arc::new(slot);
    let guards = (work, Arc::clone(&slot));
    // The handler runs to its end, even if the client disconnects.
    let writing = spawn_response(move || {
        let _guards = guards;
        runtime.block_on(async move {
            let late = |_| ApiError::Unavailable("the request took too long".to_owned());
            let written = write(Arc::clone(&expensive), ResponseWriter::new(long));
            tokio::time::timeout(limit, expensive.run_while_responsive(written)).await.map_err(late)?
        })
    })?;
    let guarded = |body| Body::new(guard_body(body, slot));
    // The channel is closed without a body if the body is short, or if the handler failed.
    let long_body = long_body.await.ok();
    if let Some(LongBody { version, receiver }) = long_body {
        if accepts_streaming {
            tokio::spawn(log_truncation(writing, current_request_id()));
            generation.record_returned_version(version);
            return Ok(handle.respond(&handle.key.etag(&version), None, || guarded(receiver.into_body())));
        }
        let written = wait_for_end(writing).await?;
        generation.record_returned_version(version);
        let link = handle.link(written.next_cursor.as_deref());
        let mut response =
            handle.respond(&handle.key.etag(&version), link.as_ref(), || guarded(receiver.into_body()));
        if response.status() == StatusCode::OK {
            response.headers_mut().insert(header::CONTENT_LENGTH, written.length.into());
        }
        return Ok(response);
    }
    let written = wait_for_end(writing).await;
    let FinishedBody { version, next_cursor, short, .. } =
        explain_unknown_symbol(&app, &generation, written).await?;
    generation.record_returned_version(version);
    let answer = handle.to_cached(short, &version, next_cursor.as_deref());
    handle.insert_into(&app.response_cache, answer.clone());
    Ok(handle.respond(&answer.etag, answer.link.as_ref(), || guarded(answer.body.into())))
}

async fn wait_for_end(writing: JoinHandle<WriteOutcome>) -> WriteOutcome {
    writing.await.map_err(|_| ApiError::Internal(anyhow::anyhow!("the handler panicked")))?
}

/// Logs the error of a response that is already being sent.
async fn log_truncation(writing: JoinHandle<WriteOutcome>, id: RequestId) {
    match wait_for_end(writing).await {
        Ok(_) | Err(ApiError::ClientDisconnected(_)) => {}
        Err(error) => tracing::error!(request_id = id.as_str(), %error, "a streamed response was truncated"),
    }
}

/// Maximum size of a short body, in bytes. The rest of a longer body goes through a channel.
const MAX_SHORT: usize = 1024 * 1024;

/// Writer of a response that has not started. Writing starts when the data version is known.
#[derive(Debug)]
pub(crate) struct ResponseWriter {
    long: oneshot::Sender<LongBody>,
}

/// Body that exceeds [`MAX_SHORT`] bytes.
#[derive(Debug)]
pub(super) struct LongBody {
    pub(super) version: DataVersion,
    pub(super) receiver: BodyReceiver,
}

/// Writer of a response that has started.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    version: DataVersion,
    /// Channel to the task that responds; `None` after it got a long body.
    long: Option<oneshot::Sender<LongBody>>,
    sender: Option<BodySender>,
    /// Bytes that are not in the channel yet.
    buffer: Vec<u8>,
    /// Number of bytes written so far.
    length: usize,
}

/// Completely written response.
#[derive(Debug)]
pub(crate) struct FinishedBody {
    pub(super) version: DataVersion,
    pub(super) next_cursor: Option<String>,
    /// Body of a short response; empty if the body is long.
    pub(super) short: Bytes,
    pub(super) length: usize,
}

impl ResponseWriter {
    /// Creates a writer. As soon as the body is long, `long` gets it.
    pub(super) fn new(long: oneshot::Sender<LongBody>) -> Self {
        Self { long }
    }

    /// Starts a response that is rendered from this data version.
    pub(crate) fn begin(self, version: DataVersion) -> BodyWriter {
        BodyWriter { version, long: Some(self.long), sender: None, buffer: Vec::new(), length: 0 }
    }
}

impl BodyWriter {
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Disconnected> {
        let bytes = bytes.as_ref();
        self.length += bytes.len();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > MAX_SHORT
            && let Some(long) = self.long.take()
        {
            let (sender, receiver) = body_channel();
            self.sender = Some(sender);
            long.send(LongBody { version: self.version, receiver }).map_err(|_| Disconnected)?;
        }
        if let Some(sender) = &self.sender {
            let complete = self.buffer.len() - self.buffer.len() % SEGMENT;
            for segment in self.buffer.drain(..complete).as_slice().chunks(SEGMENT) {
                sender.send(segment)?;
            }
        }
        Ok(())
    }

    /// Finishes the response. `next_cursor` is `None` on the last page.
    pub(crate) fn finish(self, next_cursor: Option<String>) -> Result<FinishedBody, Disconnected> {
        let short = match self.sender {
            // A boxed slice is used, because it has no spare capacity.
            None => self.buffer.into_boxed_slice().into(),
            Some(sender) => {
                sender.send(&self.buffer)?;
                sender.finish()?;
                Bytes::new()
            }
        };
        Ok(FinishedBody { version: self.version, next_cursor, short, length: self.length })
    }
}
