//! Listens, serves connections within bounds, and drains when asked to stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use process::Shutdown;
use store::db::{API_ROLE, DatabaseSettings, config_for, replicas_config};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::access::Admission;
use crate::access::throttle::Throttle;
use crate::app::{App, Shared};
use crate::cache::Answers;
use crate::cursor::Signer;
use crate::read::lag::Lag;
use crate::read::projection::{self, Connecting, Projection};
use crate::read::universe::Universes;
use crate::router;
use crate::settings::{HEAD_BYTES, ServeSettings};
use crate::tasks::Tasks;

/// The longest a client may take to send a request's head, and to keep an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until asked to stop, then finishes the open requests.
pub async fn serve(
    settings: ServeSettings,
    database: &DatabaseSettings,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(settings.listen).await.with_context(|| {
        format!("cannot listen on {}: is another instance running there?", settings.listen)
    })?;
    let drain = settings.drain_timeout();
    let connections = Arc::new(Semaphore::new(settings.max_connections));
    let tasks = Tasks::default();
    let router = router::router(start(settings, database, &tasks)?);
    tracing::info!(address = %listener.local_addr()?, "listening");
    let open = Connections::default();
    loop {
        tokio::select! {
            permit = accept(&listener, &connections) => {
                if let Some((stream, permit)) = permit {
                    serve_connection(stream, permit, router.clone(), &open);
                }
            }
            () = shutdown.wait() => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(drain, open.graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    open.tasks.stop(drain).await;
    // Nobody is left who could hand the workers anything: they finish what they have.
    drop(router);
    if !tasks.stop(drain).await {
        tracing::warn!("some work beside the requests did not end in time");
    }
    tracing::info!("stopped");
    Ok(())
}

/// The connections that are open, and the tasks that serve them.
#[derive(Default)]
struct Connections {
    graceful: GracefulShutdown,
    tasks: Tasks,
}

/// Builds the shared state and starts what runs beside the requests.
fn start(settings: ServeSettings, database: &DatabaseSettings, tasks: &Tasks) -> anyhow::Result<App> {
    if settings.cursor_secret.is_none() {
        tracing::warn!(
            "CURSOR_SECRET is not set: cursors end with this process and other instances refuse them"
        );
    }
    let config = config_for(
        settings.api_database_url.as_deref(),
        database.database_url.as_deref(),
        API_ROLE,
        "API_DATABASE_URL",
    )?;
    let reading = match settings.database_read_urls.is_empty() {
        true => config.clone(),
        false => replicas_config(&settings.database_read_urls, "DATABASE_READ_URLS")?,
    };
    let connecting = Connecting {
        config: reading,
        connections: settings.read_connections.max(1),
        timeout: settings.read_timeout(),
    };
    let projection = Arc::new(Projection::new(tasks.clone()));
    tasks.spawn_until_stopped(projection::watch(Arc::clone(&projection), connecting));
    let lag = Lag::default();
    if let Some(url) = settings.nats_url.clone() {
        tasks.spawn_until_stopped(lag.clone().watch(
            url,
            settings.nats_stream.clone(),
            Arc::clone(&projection),
        ));
    }
    Ok(App(Arc::new(Shared {
        throttle: Throttle::new(settings.calls_by_address(), settings.failures_by_address()),
        admission: Admission::start(config, settings.admission_timeout(), tasks),
        answers: Answers::new(settings.cache_mib * 1024 * 1024),
        universes: Universes::default(),
        signer: Signer::new(settings.cursor_secret.as_ref()).context("CURSOR_SECRET cannot be used")?,
        projection,
        lag,
        settings,
    })))
}

/// The next connection, once one may be open.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            // Out of file handles, or the client was gone already: waiting a moment is all there is to do.
            tracing::warn!("cannot accept a connection: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

fn serve_connection(stream: TcpStream, permit: OwnedSemaphorePermit, router: Router, open: &Connections) {
    let _ = stream.set_nodelay(true);
    let Ok(peer) = stream.peer_addr() else { return };
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
        router.clone().oneshot(request.map(axum::body::Body::new) as Request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let connection = open.graceful.watch(connection);
    open.tasks.spawn_until_stopped(async move {
        // A client that breaks off is its own affair.
        let _ = connection.await;
        drop(permit);
    });
}
