//! Database that serves reads: the primary or a replica. One task per database polls it for the active generation.
//!
//! Invariant: a reconnect replaces all connections, because the host may have changed.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use deadpool_postgres::RecyclingMethod;
use futures::StreamExt;
use store::connect;
use store::db::{DbError, add_session_options, error_chain, refuse_older_schema};
use store::ids::GenerationId;
use store::tls::MakeRustlsConnect;
use telemetry::LogLimit;
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client, Config};

use super::served_generation::ServedGeneration;
use super::{QueryError, build_pool};
use crate::concurrency::{BackgroundTasks, connection_pauses};

const ACTIVE: &str = include_str!("../../queries/projection/active.sql");
const VERSION: &str = include_str!("../../queries/projection/version.sql");
/// Polling interval of the primary. Usually, the Postgres notification of a commit triggers the next poll earlier. If
/// the notification is lost, this interval limits the delay.
const POLL: Duration = Duration::from_secs(2);
/// Polling interval of a replica, which sends no notifications.
const REPLICA_POLL: Duration = Duration::from_millis(300);
/// Minimum pause between two polls, even if notifications arrive faster.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Pause between heartbeats.
const BEAT: Duration = Duration::from_millis(300);
/// Timeout of a heartbeat. A database that hangs is reported within two seconds.
const BEAT_TIMEOUT: Duration = Duration::from_millis(1_400);

/// Connection settings of a database that serves reads.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) config: Config,
    pub(crate) connections: usize,
    /// Number of connections for expensive responses.
    pub(crate) expensive_connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) tls: MakeRustlsConnect,
}

impl ConnectionSettings {
    /// Connection configuration with additional session options.
    fn with_options(&self, options: &str) -> Config {
        let mut config = self.config.clone();
        add_session_options(&mut config, options);
        config
    }

    /// Settings for one host of the URL. The heartbeat watches only one server, so all connections must use the same
    /// host.
    fn on_host(&self, index: usize) -> Self {
        Self { config: connect::config_of_host(&self.config, index), ..self.clone() }
    }

    /// Opens pools of read-only connections for a generation.
    pub(super) fn open_generation(
        &self,
        id: GenerationId,
        tasks: &BackgroundTasks,
        answered: &Arc<AtomicI64>,
    ) -> Result<Arc<ServedGeneration>, QueryError> {
        let config = self.with_options(&format!(
            "-c search_path={},control -c jit=off -c statement_timeout={}",
            store::db::generation_schema(id),
            self.timeout.as_millis(),
        ));
        let pool = |connections| {
            // A read-only connection option would conflict with `target_session_attrs=read-write` in the URL.
            let setup = "set default_transaction_read_only = on";
            build_pool(
                config.clone(),
                self.tls.clone(),
                connections,
                self.timeout,
                RecyclingMethod::Fast,
                setup,
            )
        };
        let pools = [pool(self.connections)?, pool(self.expensive_connections)?];
        Ok(ServedGeneration::new(id, pools, tasks, answered))
    }
}

/// State shared by the primary and all replicas.
#[derive(Debug, Default)]
pub(super) struct SharedReadState {
    pub(super) tasks: BackgroundTasks,
    /// Greatest journal position that this instance has returned in a response.
    pub(super) answered: Arc<AtomicI64>,
    /// Greatest journal position that the primary is known to have.
    pub(super) newest: AtomicI64,
    /// Notified after each poll. It wakes the requests that wait for a version.
    pub(super) polled: Notify,
    /// Notified by a request that waits for a version. Every database is then polled immediately.
    pub(super) wanted: Notify,
}

/// Database that serves reads: the primary or a replica.
#[derive(Debug)]
pub(super) struct ReadSource {
    pub(super) is_primary: bool,
    current: RwLock<Option<Arc<ServedGeneration>>>,
    reachable: AtomicBool,
    /// True if the latest connection found a schema that is older than that of this program.
    lacks_migrations: AtomicBool,
    polls: AtomicU64,
    /// Last time at which the database had the newest known journal position.
    current_at: Mutex<Instant>,
}

impl ReadSource {
    pub(super) fn new(is_primary: bool) -> Self {
        Self {
            is_primary,
            current: RwLock::default(),
            reachable: AtomicBool::default(),
            lacks_migrations: AtomicBool::default(),
            polls: AtomicU64::default(),
            current_at: Mutex::new(Instant::now()),
        }
    }

    /// Served generation of this database.
    pub(super) fn generation(&self) -> Option<Arc<ServedGeneration>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if the database answered the latest poll.
    pub(super) fn is_reachable(&self) -> bool {
        self.reachable.load(Ordering::Relaxed)
    }

    /// True if the schema of the database is older than that of this program. The database is then not read.
    pub(super) fn lacks_migrations(&self) -> bool {
        self.lacks_migrations.load(Ordering::Relaxed)
    }

    /// Number of completed polls.
    pub(super) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Acquire)
    }

    /// Time since the last poll that found this database up to date with the newest known journal position.
    pub(super) fn age(&self) -> Duration {
        self.current_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Follows the active generation until the process ends. Reconnects after each lost connection.
    pub(super) async fn follow(
        self: Arc<Self>,
        shared: Arc<SharedReadState>,
        connecting: ConnectionSettings,
    ) {
        static LIMIT: LogLimit = LogLimit::new();
        let new_pauses = || connection_pauses(Duration::from_millis(100), Duration::from_millis(300));
        let mut pauses = None;
        loop {
            let Err(error) = self.follow_until_disconnected(&shared, &connecting).await else { continue };
            if self.reachable.swap(false, Ordering::Relaxed) {
                pauses = None;
            }
            if matches!(error, QueryError::Timeout)
                && let Some(generation) = self.generation()
            {
                generation.abandon();
            }
            if let Some(suppressed) = LIMIT.admit() {
                tracing::warn!(error = %error_chain(&error), suppressed, "cannot follow the projection");
            }
            let pause = pauses.get_or_insert_with(new_pauses).next();
            tokio::time::sleep(pause.unwrap_or(POLL)).await;
        }
    }

    async fn follow_until_disconnected(
        &self,
        shared: &SharedReadState,
        connecting: &ConnectionSettings,
    ) -> Result<(), QueryError> {
        let config =
            connecting.with_options(&format!("-c statement_timeout={}", connecting.timeout.as_millis()));
        let (client, mut driver, host) = connect::open_host(&config, &connecting.tls).await?;
        let connecting = &connecting.on_host(host);
        let (sender, mut notified) = mpsc::channel(1);
        let driving = async {
            let mut messages = futures::stream::poll_fn(|cx| driver.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    // One pending notification suffices, because a poll reads the newest state.
                    let _ = sender.try_send(());
                }
            }
        };
        tokio::select! {
            () = driving => Err(QueryError::ConnectionEnded),
            () = wait_until_unresponsive(&client) => Err(QueryError::Timeout),
            followed = self.poll_forever(shared, connecting, &client, &mut notified) => followed,
        }
    }

    async fn poll_forever(
        &self,
        shared: &SharedReadState,
        connecting: &ConnectionSettings,
        client: &Client,
        notified: &mut mpsc::Receiver<()>,
    ) -> Result<(), QueryError> {
        let checked = refuse_older_schema(client).await;
        let is_old = matches!(checked, Err(DbError::OlderSchema { .. }));
        self.lacks_migrations.store(is_old, Ordering::Relaxed);
        checked?;
        if self.is_primary {
            client.batch_execute("listen projection").await?;
        }
        let interval = if self.is_primary { POLL } else { REPLICA_POLL };
        let mut generation = None;
        loop {
            let wanted = shared.wanted.notified();
            let polling = self.poll(shared, connecting, client, &mut generation);
            tokio::time::timeout(connecting.timeout * 2, polling)
                .await
                .map_err(|_| QueryError::Timeout)??;
            self.reachable.store(true, Ordering::Relaxed);
            self.polls.fetch_add(1, Ordering::Release);
            shared.polled.notify_waiters();
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
            tokio::select! {
                notification = notified.recv() => if notification.is_none() { return Err(QueryError::ConnectionEnded) },
                () = wanted => {}
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    /// Reads the id and data version of the active generation, and serves this generation from now on. `followed` is
    /// the generation of the previous poll; `None` after a reconnect.
    async fn poll(
        &self,
        shared: &SharedReadState,
        connecting: &ConnectionSettings,
        client: &Client,
        followed: &mut Option<Arc<ServedGeneration>>,
    ) -> Result<(), QueryError> {
        let row = client.query_opt(ACTIVE, &[]).await?.ok_or(QueryError::NoneActive)?;
        let id: GenerationId = row.try_get("generation")?;
        let opened = match followed {
            Some(generation) if generation.id == id => None,
            _ => Some(connecting.open_generation(id, &shared.tasks, &shared.answered)?),
        };
        let Some(generation) = opened.as_ref().or(followed.as_ref()) else { return Ok(()) };
        if opened.is_some() {
            drop(generation.client().await?);
            let path = format!("set search_path = {}, control", store::db::generation_schema(id));
            client.batch_execute(&path).await?;
        }
        let row = client.query_one(VERSION, &[]).await?;
        let version = generation.record_polled(&row)?;
        self.record_position(shared, version.position.0, followed.is_none());
        if let Some(generation) = opened {
            tracing::info!(generation = id.0, %version, replica = !self.is_primary, "serving");
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&generation));
            *followed = Some(generation);
        }
        Ok(())
    }

    /// Records the journal position that a poll read. `is_first` is true for the first poll after a reconnect.
    fn record_position(&self, shared: &SharedReadState, position: i64, is_first: bool) {
        if self.is_primary {
            // A failover can lose the newest data of the primary, so the known position may fall.
            if is_first {
                shared.newest.store(position, Ordering::Relaxed);
                shared.answered.fetch_min(position, Ordering::Relaxed);
            }
            shared.newest.fetch_max(position, Ordering::Relaxed);
        }
        if position >= shared.newest.load(Ordering::Relaxed) {
            *self.current_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }
}

/// Returns when the server does not reply to a heartbeat within [`BEAT_TIMEOUT`]. An error is a reply too: if the
/// connection ended, its driver reports this.
async fn wait_until_unresponsive(client: &Client) {
    while tokio::time::timeout(BEAT_TIMEOUT, client.simple_query("")).await.is_ok() {
        tokio::time::sleep(BEAT).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, DuplexStream};
    use tokio_postgres::tls::NoTlsStream;
    use tokio_postgres::{Connection, NoTls};

    /// Opens a connection to a server that accepts the sign-in and then replies to nothing.
    async fn connect_to_silent_server() -> (Client, Connection<DuplexStream, NoTlsStream>, DuplexStream) {
        let (local, mut server) = tokio::io::duplex(1_024);
        // The messages AuthenticationOk and ReadyForQuery.
        server.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await.unwrap();
        let (client, driver) = Config::new().user("u").connect_raw(local, NoTls).await.unwrap();
        (client, driver, server)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_missing_reply_makes_a_server_unresponsive() {
        let (client, driver, _server) = connect_to_silent_server().await;
        let driving = tokio::spawn(driver);
        let started = tokio::time::Instant::now();
        wait_until_unresponsive(&client).await;
        assert_eq!(started.elapsed(), BEAT_TIMEOUT);
        // A lost connection is not an unresponsive server: the reads of its generation may open a new connection.
        driving.abort();
        let _ = driving.await;
        let waited = tokio::time::timeout(BEAT_TIMEOUT * 10, wait_until_unresponsive(&client)).await;
        assert!(waited.is_err());
    }
}
