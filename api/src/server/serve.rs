//! HTTP server: listener, connection limits and graceful shutdown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Body;
use futures::future::Abortable;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use ipnet::IpNet;
use socket2::SockRef;
use store::db::{self, API_ROLE, DASHBOARD_ROLE, DatabaseSettings, DbError, config_for, replicas_config};
use store::tls;
use telemetry::Shutdown;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_postgres::Config;

use crate::admission::Admission;
use crate::app::dashboard_settings::Switch;
use crate::app::dashboard_state::Dashboard;
use crate::app::settings::{HEAD_BYTES, ServeSettings};
use crate::app::state::{App, Shared};
use crate::auth::client_address;
use crate::auth::throttle::Throttle;
use crate::concurrency::fair_queue::FairQueue;
use crate::concurrency::tasks::Tasks;
use crate::connection::{Guarded, Registry, Tracked};
use crate::metrics::Metrics;
use crate::middleware::{self, ConnectionInfo};
use crate::parameters::cursor::Signer;
use crate::read::lag::Lag;
use crate::read::projection::{self, Connecting, Projection};
use crate::read::universe::Universes;
use crate::render::cache::Answers;
use crate::server::monitoring::Seen;
use crate::server::router;

/// Maximum number of connections waiting for acceptance. The system may lower it (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// Serves until the shutdown signal, then finishes the open requests.
pub async fn serve(
    settings: ServeSettings,
    database: &DatabaseSettings,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let listener = listen(settings.listen).with_context(|| {
        format!("cannot listen on {}: is another instance running there?", settings.listen)
    })?;
    let metrics = settings.metrics.bind().await?;
    let drain = settings.drain_timeout();
    let clients = Clients::of(&settings);
    let tasks = Tasks::default();
    refuse_newer_database(&settings, database).await?;
    let app = start(settings, database, &tasks)?;
    let router = router::router(app.clone());
    clients.tasks.spawn_until_stopped(Arc::clone(&clients.registry).sweep());
    if let Some(metrics) = metrics {
        let observed = Seen { app: app.clone(), registry: Arc::clone(&clients.registry) };
        tasks.spawn_until_stopped(metrics.serve(Arc::new(observed)));
    }
    tracing::info!(address = %listener.local_addr()?, "listening");
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => clients.serve(stream, peer, &app, &router),
                Err(error) => {
                    // No file descriptor is free, or the client has gone. A short pause is the only remedy.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = shutdown.wait() => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(drain, clients.graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    clients.registry.end_all();
    clients.tasks.stop(drain).await;
    // The last handles of the workers are dropped, so the workers finish their queues.
    drop((app, router));
    if !tasks.stop(drain).await {
        tracing::warn!("some work beside the requests did not end in time");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Listens with a large backlog. A client that exceeds it retries only after a second or more.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Connections of the previous instance may still be in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn primary(settings: &ServeSettings, database: &DatabaseSettings) -> Result<Config, DbError> {
    let (own, owner) = (settings.api_database_url.as_deref(), database.database_url.as_deref());
    config_for(own, owner, API_ROLE, "API_DATABASE_URL")
}

/// Refuses a newer database at the start only. A running instance continues to read a database that is upgraded.
async fn refuse_newer_database(settings: &ServeSettings, database: &DatabaseSettings) -> anyhow::Result<()> {
    let config = primary(settings, database)?;
    let asking = async { db::refuse_newer(&db::connect(&config).await?).await };
    // An unreachable database must not prevent the start.
    match tokio::time::timeout(settings.read_timeout(), asking).await {
        Ok(Err(error)) if !error.is_unreachable() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Builds the shared state and starts the background tasks.
fn start(settings: ServeSettings, database: &DatabaseSettings, tasks: &Tasks) -> anyhow::Result<App> {
    if settings.cursor_secret.is_none() {
        tracing::warn!(
            "CURSOR_SECRET is not set: cursors end with this process and other instances refuse them"
        );
    }
    let config = primary(&settings, database)?;
    let reading = match settings.database_read_urls.is_empty() {
        true => config.clone(),
        false => replicas_config(&settings.database_read_urls, "DATABASE_READ_URLS")?,
    };
    let tls = tls::connector(&config)?;
    let connecting = Connecting {
        tls: tls::connector(&reading)?,
        config: reading,
        connections: settings.read_connections.max(1),
        connections_apart: settings.costly_connections.max(1),
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
    let dashboard = dashboard(&settings, database)?;
    let metrics = Metrics::new()?;
    Ok(App(Arc::new(Shared {
        dashboard,
        throttle: Throttle::new(settings.calls_by_address(), settings.failures_by_address()),
        admission: Admission::start(
            config,
            &tls,
            settings.admission_timeout(),
            tasks,
            metrics.admission.clone(),
        ),
        fair_queue: FairQueue::new(settings.costly_connections, settings.turn_timeout()),
        answers: Answers::new(settings.cache_mib * 1024 * 1024, metrics.cache.clone()),
        universes: Universes::default(),
        signer: Signer::new(settings.cursor_secret.as_ref(), settings.cursor_secret_previous.as_ref())
            .context("CURSOR_SECRET cannot be used")?,
        projection,
        lag,
        metrics,
        settings,
    })))
}

/// Dashboard state; `None` if the dashboard is switched off.
fn dashboard(
    settings: &ServeSettings,
    database: &DatabaseSettings,
) -> anyhow::Result<Option<Arc<Dashboard>>> {
    let settings = &settings.dashboard;
    if settings.dashboard == Switch::Off {
        return Ok(None);
    }
    let config = config_for(
        settings.dashboard_database_url.as_deref(),
        database.database_url.as_deref(),
        DASHBOARD_ROLE,
        "DASHBOARD_DATABASE_URL",
    )
    .context("the dashboard has no database; DASHBOARD=off serves without it")?;
    Ok(Some(Arc::new(Dashboard::new(settings.clone(), config)?)))
}

/// Open client connections and the tasks that serve them.
struct Clients {
    registry: Arc<Registry>,
    trusted: Vec<IpNet>,
    write_timeout: Duration,
    graceful: GracefulShutdown,
    tasks: Tasks,
}

impl Clients {
    fn of(settings: &ServeSettings) -> Self {
        let patience = settings.client_patience();
        Self {
            registry: Registry::new(settings.connection_caps(file_limit()), patience),
            trusted: settings.trusted_proxies.clone(),
            write_timeout: patience.write,
            graceful: GracefulShutdown::new(),
            tasks: Tasks::default(),
        }
    }

    /// Serves a connection until it ends or is aborted.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, app: &App, router: &Router) {
        let is_trusted = client_address::is_trusted(peer.ip(), &self.trusted);
        let Some((registered, ended)) = self.registry.register(peer.ip(), is_trusted) else { return };
        let _ = stream.set_nodelay(true);
        // The timeout also covers bytes in the kernel's send buffer, on systems with this option.
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(self.write_timeout));
        let connection = Arc::clone(&registered.connection);
        let refusing = app.clone();
        let on_protocol_error = Box::new(move |status| middleware::refuse(&refusing, peer.ip(), status));
        let stream = Guarded::new(stream, Arc::clone(&connection), on_protocol_error);
        let (app, router) = (app.clone(), router.clone());
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let working = connection.working();
            let info = ConnectionInfo { peer, is_proxied: is_trusted, connection: Arc::clone(&connection) };
            let answered = middleware::handle(app.clone(), router.clone(), info, request.map(Body::new));
            async { Ok::<_, Infallible>(answered.await.map(|body| Tracked::new(body, working))) }
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let serving = self.graceful.watch(serving);
        // A connection error concerns only its client.
        self.tasks.spawn(async move {
            let _ = Abortable::new(serving, ended).await;
            drop(registered);
        });
    }
}

/// Maximum number of open files; `None` on systems without `/proc`.
fn file_limit() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
