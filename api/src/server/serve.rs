//! HTTP server: listener, connection limits, source of operational metrics, and graceful shutdown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::body::Body;
use futures::FutureExt;
use futures::future::Abortable;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use ipnet::IpNet;
use prometheus::proto::MetricFamily;
use socket2::SockRef;
use store::db::{DatabaseSettings, DbError, error_chain, replica_configs};
use store::published_files::FileStore;
use store::tls;
use telemetry::Shutdown;
use telemetry::listener::MetricsSource;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_postgres::Config;

use super::{accounts_config, check_databases, dashboard_config, market_config, router};
use crate::admission::AdmissionQueue;
use crate::admission::open_streams::{OpenStreams, StreamLimits};
use crate::app::service_history::HistoryReader;
use crate::app::settings::{DashboardSwitch, HEAD_BYTES, ServeSettings};
use crate::app::{App, DashboardState, OrdinaryRequests, SharedState};
use crate::auth::address_throttle::{AddressAllowance, AddressThrottle};
use crate::auth::client_address;
use crate::concurrency::BackgroundTasks;
use crate::concurrency::limiter::ConcurrencyLimiter;
use crate::concurrency::refreshed::RefreshedValue;
use crate::connection::{ConnectionRegistry, WriteTimeout};
use crate::metrics::{ApiMetrics, gauge};
use crate::middleware::{self, ConnectionInfo};
use crate::parameters::cursor::CursorSigner;
use crate::read::changes::JournalReader;
use crate::read::memory_tables::MemoryTables;
use crate::read::projection::{LagMonitor, Projection};
use crate::read::read_source::ConnectionSettings;
use crate::render::body_channel::guard_body;
use crate::render::cache::ResponseCache;

/// Maximum number of new connections that wait until the server accepts them. The system may reduce it
/// (`net.core.somaxconn`). If the queue is full, a further client gets no reply, and retries only after a second or
/// more.
const BACKLOG: u32 = 4_096;

/// Serves requests until the shutdown signal. Then completes the open requests.
pub async fn serve(
    settings: ServeSettings,
    database: &DatabaseSettings,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let address = settings.listen;
    let in_use = || format!("cannot listen on {address}; another program may use this address");
    let socket = bind(address).with_context(in_use)?;
    let metrics = settings.metrics.bind().await?;
    let clients = Clients::of(&settings);
    let tasks = BackgroundTasks::default();
    let ServeSettings { drain_timeout: drain, drain_delay, read_timeout: start_limit, .. } = settings;
    check_databases(&settings, database).await?;
    warn_about_public_address(&settings);
    let app = start(settings, database, &tasks)?;
    let router = router::build_router(app.clone()).context("cannot build the OpenAPI document")?;
    if let Some(metrics) = metrics {
        let observed = ApiMetricsSource { app: app.clone(), registry: Arc::clone(&clients.registry) };
        tasks.spawn_until_stopped(metrics.serve(Arc::new(observed)));
    }
    // A client that connects before the server is ready would get a 503. The server therefore listens when it is ready,
    // or after `start_limit`.
    tokio::select! { () = wait_until_ready(&app, start_limit) => {}, () = shutdown.wait() => {} }
    let listener = socket.listen(BACKLOG).with_context(in_use)?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    clients.accept_until(&listener, &app, &router, shutdown.wait()).await;
    app.draining.store(true, Ordering::Relaxed);
    clients.accept_until(&listener, &app, &router, tokio::time::sleep(drain_delay)).await;
    // The kernel has completed the handshake of the connections in its backlog. Closing the listener would reset them.
    while let Some(Ok((stream, peer))) = listener.accept().now_or_never() {
        clients.serve(stream, peer, &app, &router);
    }
    drop(listener);
    app.streams.stop();
    if tokio::time::timeout(drain, clients.graceful.shutdown()).await.is_err() {
        tracing::warn!("open requests did not finish before the drain timeout");
    }
    clients.tasks.stop(drain).await;
    // The workers finish their queues and end when their last handles are dropped.
    drop((app, router));
    if !tasks.stop(drain).await {
        tracing::warn!("background tasks did not finish before the drain timeout");
    }
    tracing::info!("stopped");
    Ok(())
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Without this option, `bind` fails while connections of the previous instance are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Waits until requests can be served, but not longer than `limit`. After `limit`, the server listens although it is
/// not ready, so that clients can ask for its health.
async fn wait_until_ready(app: &App, limit: Duration) {
    let started = Instant::now();
    while let Some(reason) = app.find_unreadiness() {
        if started.elapsed() > limit {
            tracing::warn!(reason, "the server listens although it cannot serve requests yet");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Warns if `PUBLIC_URL` is not set although other machines can reach the dashboard. Example calls on the dashboard
/// then show the address from the `Host` header, which the client chooses.
fn warn_about_public_address(settings: &ServeSettings) {
    let (listen, dashboard) = (settings.listen, &settings.dashboard);
    if !listen.ip().is_loopback()
        && dashboard.dashboard == DashboardSwitch::On
        && dashboard.public_url.is_none()
    {
        tracing::warn!(
            %listen,
            "PUBLIC_URL is not set: example calls of the dashboard show the Host header of the request; set it to the public address"
        );
    }
}

/// Builds the shared state and starts the background tasks.
fn start(
    settings: ServeSettings,
    database: &DatabaseSettings,
    tasks: &BackgroundTasks,
) -> anyhow::Result<App> {
    if settings.cursor_secret.is_none() {
        tracing::warn!(
            "CURSOR_SECRET is not set: cursors end with this process, and other instances refuse them"
        );
    }
    let config = market_config(&settings, database)?;
    let accounts = accounts_config(&settings, database)?;
    let tls = tls::tls_connector(&accounts)?;
    let reading = |config: Config| {
        Ok::<_, DbError>(ConnectionSettings {
            tls: tls::tls_connector(&config)?,
            config,
            connections: settings.read_connections.max(1),
            expensive_connections: settings.costly_connections.max(1),
            timeout: settings.read_timeout,
        })
    };
    let replicas = match settings.database_read_urls.as_deref().map(str::trim) {
        None | Some("") => vec![],
        Some(urls) => replica_configs(urls, "DATABASE_READ_URLS")?,
    };
    let replicas = replicas.into_iter().map(reading).collect::<Result<_, _>>()?;
    let projection =
        Arc::new(Projection::follow(reading(config)?, replicas, settings.max_replica_age, tasks));
    let lag = LagMonitor::default();
    if let Some(url) = settings.nats_url.clone() {
        let stream = settings.nats_stream.clone();
        tasks.spawn_until_stopped(lag.clone().poll_stream(url, stream, Arc::clone(&projection)));
    }
    let dashboard = dashboard_config(&settings, database)?
        .map(|config| DashboardState::new(settings.dashboard.clone(), config).map(Arc::new))
        .transpose()?;
    let metrics = ApiMetrics::new()?;
    let history = HistoryReader::start(accounts.clone(), metrics.traffic_counter(), tasks)?;
    let admission =
        AdmissionQueue::start(accounts, &tls, settings.admission_timeout, tasks, metrics.admission.clone());
    let journal_reader = JournalReader::new();
    let streams = OpenStreams::new(StreamLimits(settings.change_streams), admission.clone());
    tasks.spawn_until_stopped(Arc::clone(&journal_reader).run(Arc::clone(&projection)));
    tasks.spawn_until_stopped(Arc::clone(&streams).renew_leases());
    let allowance = |per_minute, burst| AddressAllowance { per_minute, burst };
    Ok(App(Arc::new(SharedState {
        dashboard,
        throttle: AddressThrottle::new(
            allowance(settings.address_calls_per_minute, settings.address_calls_burst),
            allowance(settings.address_failures_per_minute, settings.address_failures_burst),
            allowance(settings.dashboard.pages_per_minute, settings.dashboard.pages_burst),
        ),
        admission,
        journal_reader,
        streams,
        expensive_limiter: ConcurrencyLimiter::new(settings.expensive_limits()),
        response_cache: ResponseCache::new(settings.cache_mib * 1024 * 1024, metrics.cache.clone()),
        files: settings
            .files_url
            .as_deref()
            .filter(|url| !url.is_empty())
            .map(FileStore::open)
            .transpose()
            .context("cannot use FILES_URL")?,
        ordinary_requests: OrdinaryRequests::default(),
        memory_tables: MemoryTables::default(),
        signer: CursorSigner::new(settings.cursor_secret.as_ref(), settings.cursor_secret_previous.as_ref())
            .context("cannot use CURSOR_SECRET")?,
        projection,
        lag,
        metrics,
        history,
        feed_ages: RefreshedValue::default(),
        settings,
        draining: AtomicBool::default(),
    })))
}

/// Open client connections, and the tasks that serve them.
struct Clients {
    registry: Arc<ConnectionRegistry>,
    http: http1::Builder,
    trusted: Vec<IpNet>,
    write_timeout: Duration,
    graceful: GracefulShutdown,
    tasks: BackgroundTasks,
}

impl Clients {
    fn of(settings: &ServeSettings) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(settings.idle_timeout).max_buf_size(HEAD_BYTES);
        Self {
            registry: ConnectionRegistry::new(settings.connection_caps(file_limit())),
            http,
            trusted: settings.trusted_proxies.clone(),
            write_timeout: settings.write_timeout,
            graceful: GracefulShutdown::new(),
            tasks: BackgroundTasks::default(),
        }
    }

    async fn accept_until(
        &self,
        listener: &TcpListener,
        app: &App,
        router: &Router,
        end: impl Future<Output = ()>,
    ) {
        tokio::pin!(end);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.serve(stream, peer, app, router),
                    Err(error) => {
                        // No file descriptor is free, or the client has disconnected. A short pause is the only remedy.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = &mut end => return,
            }
        }
    }

    /// Serves a connection until it ends or is aborted.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, app: &App, router: &Router) {
        let is_trusted = client_address::is_trusted_proxy(peer.ip(), &self.trusted);
        let Some((registered, aborted)) = self.registry.register(peer.ip(), is_trusted) else { return };
        let _ = stream.set_nodelay(true);
        // `TCP_USER_TIMEOUT` extends the write timeout to bytes in the kernel's send buffer. An error is ignored,
        // because some systems lack this option.
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(self.write_timeout));
        let connection = Arc::clone(&registered.connection);
        let stream = WriteTimeout::new(stream, self.write_timeout);
        let (app, router, refusing) = (app.clone(), router.clone(), app.clone());
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let working = connection.begin_request();
            let info = ConnectionInfo { peer, is_proxied: is_trusted, connection: Arc::clone(&connection) };
            let answered =
                middleware::handle_request(app.clone(), router.clone(), info, request.map(Body::new));
            // hyper keeps the memory of the service future while the connection is open. In a box, this memory is only
            // a pointer, and the future is freed after each request.
            Box::pin(
                answered.map(|response| Ok::<_, Infallible>(response.map(|body| guard_body(body, working)))),
            )
        });
        let serving = self.http.serve_connection(TokioIo::new(stream), service);
        let serving = Abortable::new(self.graceful.watch(serving), aborted);
        self.tasks.spawn_until_stopped(async move {
            // hyper replies to a malformed request. It counts as a call of the client address. Other errors of a
            // connection concern only its client.
            if let Ok(Err(error)) = serving.await
                && error.is_parse()
            {
                let _ = refusing.throttle.charge_call(peer.ip());
            }
            drop(registered);
        });
    }
}

/// Maximum number of open files; `None` on a system without `/proc`.
fn file_limit() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Source of the API's operational metrics and health. It reads the application state and the client connections.
#[derive(Debug)]
pub(crate) struct ApiMetricsSource {
    pub(crate) app: App,
    pub(crate) registry: Arc<ConnectionRegistry>,
}

impl MetricsSource for ApiMetricsSource {
    fn metrics(&self) -> Vec<MetricFamily> {
        let (app, metrics) = (&self.app, &self.app.metrics);
        metrics.queue.set(gauge(app.admission.waiting_calls()));
        metrics.streams.set(gauge(app.streams.count()));
        for (state, count) in ["working", "idle"].into_iter().zip(self.registry.count_working_and_idle()) {
            metrics.connections.with_label_values(&[state]).set(gauge(count));
        }
        for (state, count) in ["read", "left_out"].into_iter().zip(app.projection.count_replicas()) {
            metrics.replicas.with_label_values(&[state]).set(gauge(count));
        }
        for (server, is_up) in [
            ("postgres", app.projection.is_database_reachable()),
            ("accounts", app.admission.is_database_reachable()),
        ] {
            metrics.servers.with_label_values(&[server]).set(is_up.into());
        }
        let pools = app.projection.pin().map(|generation| generation.pool_usage());
        for (pool, usage) in ["reads", "costly"].into_iter().zip(pools.unwrap_or_default()) {
            metrics.pool_waiting.with_label_values(&[pool]).set(gauge(usage.waiting));
            metrics.pool_in_use.with_label_values(&[pool]).set(gauge(usage.in_use));
        }
        metrics.registry.gather()
    }

    fn health(&self) -> Result<(), String> {
        if !self.app.projection.is_database_reachable() {
            return Err("the database of the market does not answer, so reads are not served".to_owned());
        }
        self.app.projection.pin().map(drop).map_err(|error| error_chain(&error))
    }
}
