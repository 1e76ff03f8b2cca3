//! Streamed responses to expensive requests. Each one is rendered on a separate thread after the fair queue grants a
//! permit. It is sent while it is rendered.

use std::sync::Arc;
use std::{io, thread};

use axum::body::Body;
use axum::response::Response;
use futures::future::LocalBoxFuture;
use tokio::sync::oneshot;

use super::named::{Asked, Named};
use super::outlet::{Outlet, Written};
use crate::app::state::App;
use crate::concurrency::cpu_pool::lower_thread_priority;
use crate::concurrency::fair_queue::{AccountSlot, Permit, RenderPermit};
use crate::connection::request_id::request_id;
use crate::error::ApiError;
use crate::read::projection::Generation;
use crate::render::body_channel::{Reader, pipe};

type Outcome = Result<Written, ApiError>;

/// Handler that writes a response from this generation.
type Write = Box<dyn FnOnce(Arc<Generation>, Outlet) -> LocalBoxFuture<'static, Outcome> + Send>;

/// Runs `write` and responds. A short response is sent whole, a long one in parts.
pub(super) async fn answer(asked: Asked, write: Write) -> Result<Response, ApiError> {
    if let Some(kept) = asked.kept() {
        return Ok(kept);
    }
    let Permit { render, slot } = asked.app.fair_queue.acquire(asked.account).await?;
    // Another request may have cached the same response while this one waited.
    if let Some(kept) = asked.kept() {
        return Ok(kept);
    }
    let Asked { named, app, generation, takes_parts, .. } = asked;
    let apart = generation.apart();
    let (is_long, mut told) = oneshot::channel();
    let (writer, reader) = pipe(Arc::clone(&slot));
    let outlet = Outlet::new(writer, takes_parts.then_some(is_long));
    let limit = app.settings.request_timeout();
    let writing = async move || {
        let late = |_| ApiError::Unavailable("the request took too long".to_owned());
        tokio::time::timeout(limit, write(apart, outlet)).await.map_err(late)?
    };
    let mut finished = on_own_thread(writing, render, slot)
        .map_err(|error| ApiError::Unavailable(format!("no thread for a costly answer: {error}")))?;
    let outcome = tokio::select! {
        biased;
        outcome = &mut finished => outcome,
        Ok(version) = &mut told => {
            generation.observe(version);
            return Ok(named.respond(&named.etag(&version), None, || Body::new(reader)));
        }
    };
    let panicked = |_| ApiError::Internal(anyhow::anyhow!("a handler panicked"));
    let written = outcome.map_err(panicked)??;
    generation.observe(written.version);
    Ok(whole(&app, &named, &written, reader))
}

/// Runs a handler on a separate low-priority thread, so that the runtime's threads stay free. The handler runs to its
/// end, even if the client disconnects.
fn on_own_thread<F: Future<Output = Outcome>>(
    writing: impl FnOnce() -> F + Send + 'static,
    render: RenderPermit,
    slot: Arc<AccountSlot>,
) -> io::Result<oneshot::Receiver<Outcome>> {
    let (finish, finished) = oneshot::channel();
    let (runtime, id) = (tokio::runtime::Handle::current(), request_id());
    thread::Builder::new().name("costly answer".to_owned()).spawn(move || {
        lower_thread_priority();
        let outcome = runtime.block_on(writing());
        drop((render, slot));
        // After the response head is sent, the receiver is gone.
        match finish.send(outcome) {
            Ok(()) | Err(Ok(_) | Err(ApiError::Gone(_))) => {}
            Err(Err(error)) => tracing::error!(request_id = id.as_str(), "an answer broke off: {error}"),
        }
    })?;
    Ok(finished)
}

/// Response with a complete body. A short body is cached.
fn whole(app: &App, named: &Named, written: &Written, reader: Reader<Arc<AccountSlot>>) -> Response {
    let Written { version, next_cursor } = written;
    if let Some(body) = reader.whole() {
        app.answers.keep(named.key.clone(), named.answer(body, version, next_cursor.as_deref()));
    }
    let link = named.link(next_cursor.as_deref());
    named.respond(&named.etag(version), link.as_ref(), || Body::new(reader))
}
