//! Served generation of the read tables, and its data version.
//!
//! Invariants: a request uses one generation for its whole duration. The connections of a new generation are opened
//! before the switch. The version of a response comes from the statement that reads its rows.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::NaiveDate;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures::StreamExt;
use store::ids::{GenerationId, JournalPosition};
use store::tls::MakeRustlsConnect;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Config, Row};

use super::QueryError;
use super::lookup_batch::LookupBatcher;
use crate::auth::tier::TierTable;
use crate::concurrency::background_tasks::BackgroundTasks;
use crate::metrics::PoolUse;
use crate::parameters::served_rules::ServedRules;

const ACTIVE: &str = include_str!("../../queries/projection/active.sql");
const VERSION: &str = include_str!("../../queries/projection/version.sql");
/// Polling interval. It limits the delay after a lost notification.
const POLL: Duration = Duration::from_secs(2);
/// Pause between heartbeats.
const BEAT: Duration = Duration::from_millis(300);
/// Timeout of a heartbeat. A database that does not reply is detected within two seconds.
const BEAT_TIMEOUT: Duration = Duration::from_millis(1_400);

/// Data version of a response. Version and current day determine the body of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DataVersion {
    pub(crate) generation: GenerationId,
    pub(crate) sequence: i64,
    /// Newest session in the data.
    pub(crate) as_of: Option<NaiveDate>,
    /// Number of derivations so far. A policy change increases it although the sequence stays the same.
    pub(crate) position: JournalPosition,
}

impl DataVersion {
    /// Reads the version columns, which every statement for data selects.
    pub(crate) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            generation: row.try_get("version_generation")?,
            sequence: row.try_get("version_sequence")?,
            as_of: row.try_get("version_as_of")?,
            position: row.try_get("version_position")?,
        })
    }
}

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}.{}", self.generation, self.sequence)
    }
}

/// Served generation with its connections.
#[derive(Debug)]
pub(crate) struct ServedGeneration {
    pub(crate) id: GenerationId,
    pool: Pool,
    batches: LookupBatcher,
    version: Arc<RwLock<DataVersion>>,
    served_rules: RwLock<Arc<ServedRules>>,
    /// Same generation, with separate connections for expensive responses.
    bulk: Option<Arc<ServedGeneration>>,
}

impl ServedGeneration {
    /// Connection with this generation in its search path.
    pub(crate) async fn client(&self) -> Result<Object, QueryError> {
        if self.bulk.is_some() {
            return Ok(self.pool.get().await?);
        }
        // Expensive requests run on low-priority threads. tokio's blocking threads, which resolve the server's name,
        // would inherit that priority. So a worker thread connects.
        let pool = self.pool.clone();
        tokio::spawn(async move { pool.get().await })
            .await
            .map_err(|_| QueryError::GivenUp)?
            .map_err(QueryError::from)
    }

    /// Row of one symbol, looked up in a batch.
    pub(crate) async fn look_up_row(
        &self,
        statement: &'static str,
        candidates: Vec<String>,
    ) -> Result<Option<Row>, QueryError> {
        self.batches.look_up_row(&self.pool, statement, candidates).await
    }

    /// Same generation, with the connections for expensive responses.
    pub(crate) fn bulk_generation(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self.bulk.as_ref().unwrap_or(self))
    }

    /// Usage of both connection pools: the pool for reads, and the pool for expensive responses.
    pub(crate) fn pool_usage(&self) -> [PoolUse; 2] {
        let used = |pool: &Pool| {
            let status = pool.status();
            PoolUse { waiting: status.waiting, in_use: status.size.saturating_sub(status.available) }
        };
        [used(&self.pool), used(self.bulk.as_ref().map_or(&self.pool, |bulk| &bulk.pool))]
    }

    /// Rules by which the generation's figures were derived.
    pub(crate) fn served_rules(&self) -> Arc<ServedRules> {
        Arc::clone(&self.served_rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Newest known version.
    pub(crate) fn version(&self) -> DataVersion {
        *self.version.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the version of a response as known. A response may contain a new version before the notification about
    /// it arrives.
    pub(crate) fn observe(&self, version: DataVersion) {
        let mut known = self.version.write().unwrap_or_else(PoisonError::into_inner);
        if (version.sequence, version.position) >= (known.sequence, known.position) {
            *known = version;
        }
    }
}

/// Connection settings.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) config: Config,
    pub(crate) connections: usize,
    /// Number of connections for expensive responses.
    pub(crate) bulk_connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) tls: MakeRustlsConnect,
}

impl ConnectionSettings {
    /// Settings with additional session options.
    fn with_options(&self, options: &str) -> Config {
        let mut config = self.config.clone();
        let existing = config.get_options().unwrap_or_default().to_owned();
        config.options(format!("{existing} {options}").trim());
        config
    }

    fn pool(
        &self,
        generation: GenerationId,
        connections: usize,
    ) -> Result<Pool, deadpool_postgres::BuildError> {
        let config = self.with_options(&format!(
            "-c search_path={},control -c default_transaction_read_only=on -c jit=off -c statement_timeout={}",
            store::db::generation_schema(generation),
            self.timeout.as_millis(),
        ));
        let manager = Manager::from_config(
            config,
            self.tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        Pool::builder(manager)
            .max_size(connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(self.timeout))
            .create_timeout(Some(self.timeout))
            .recycle_timeout(Some(self.timeout))
            .build()
    }
}

/// Served generation, which all requests share.
#[derive(Debug)]
pub(crate) struct Projection {
    lookup_tasks: BackgroundTasks,
    current: RwLock<Option<Arc<ServedGeneration>>>,
    tiers: RwLock<Arc<TierTable>>,
    reachable: AtomicBool,
}

impl Projection {
    /// Creates a projection without a generation. `lookup_tasks` run the batched look-ups.
    pub(crate) fn new(lookup_tasks: BackgroundTasks) -> Self {
        Self {
            lookup_tasks,
            current: RwLock::default(),
            tiers: RwLock::default(),
            reachable: AtomicBool::default(),
        }
    }

    /// Current generation, which the request uses for its whole duration.
    pub(crate) fn pin(&self) -> Result<Arc<ServedGeneration>, QueryError> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone().ok_or(QueryError::NoGeneration)
    }

    /// True if Postgres answered the latest poll.
    pub(crate) fn is_database_reachable(&self) -> bool {
        self.reachable.load(Ordering::Relaxed)
    }

    /// Rules by which the served figures were derived.
    pub(crate) fn served_rules(&self) -> Arc<ServedRules> {
        self.pin().map_or_else(|_| Arc::default(), |generation| generation.served_rules())
    }

    /// Limits of the tiers.
    pub(crate) fn tiers(&self) -> Arc<TierTable> {
        Arc::clone(&self.tiers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads which generation is active, and switches to it.
    async fn switch_to_active(
        &self,
        watcher: &tokio_postgres::Client,
        connecting: &ConnectionSettings,
    ) -> Result<(), QueryError> {
        let row = watcher.query_opt(ACTIVE, &[]).await?;
        let row = row.ok_or(QueryError::NoneActive)?;
        let id: GenerationId = row.try_get("generation")?;
        let tiers = TierTable::load(watcher).await?;
        *self.tiers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tiers);
        let generation = match self.pin() {
            Ok(current) if current.id == id => current,
            _ => self.open_generation(id, connecting)?,
        };
        let client = generation.client().await?;
        let statement = client.prepare_cached(VERSION).await?;
        let row = client.query_one(&statement, &[]).await?;
        let version = DataVersion::from_row(&row)?;
        generation.observe(version);
        *generation.served_rules.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(ServedRules::from_row(&row)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|known| known.id != id) {
            tracing::info!(generation = id.0, %version, "serving");
            *current = Some(generation);
        }
        Ok(())
    }

    fn open_generation(
        &self,
        id: GenerationId,
        connecting: &ConnectionSettings,
    ) -> Result<Arc<ServedGeneration>, QueryError> {
        let version = Arc::new(RwLock::new(DataVersion {
            generation: id,
            sequence: 0,
            as_of: None,
            position: JournalPosition(0),
        }));
        let open = |connections, bulk| -> Result<_, QueryError> {
            let (pool, version) = (connecting.pool(id, connections)?, Arc::clone(&version));
            let batches = LookupBatcher::new(self.lookup_tasks.clone());
            Ok(Arc::new(ServedGeneration {
                id,
                pool,
                batches,
                version,
                served_rules: RwLock::default(),
                bulk,
            }))
        };
        let bulk = open(connecting.bulk_connections, None)?;
        open(connecting.connections, Some(bulk))
    }
}

/// Follows the active generation until the process ends. Reconnects after a connection is lost.
pub(crate) async fn follow_active_generation(projection: Arc<Projection>, connecting: ConnectionSettings) {
    loop {
        if let Err(error) = follow_until_disconnected(&projection, &connecting).await {
            projection.reachable.store(false, Ordering::Relaxed);
            tracing::warn!("cannot follow the projection: {error}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn follow_until_disconnected(
    projection: &Projection,
    connecting: &ConnectionSettings,
) -> Result<(), QueryError> {
    let config = connecting.with_options(&format!("-c statement_timeout={}", connecting.timeout.as_millis()));
    // A frozen server accepts the connection and never greets.
    let connected = tokio::time::timeout(connecting.timeout, config.connect(connecting.tls.clone())).await;
    let (client, mut connection) = connected.map_err(|_| QueryError::Silent)??;
    let (sender, mut notified) = mpsc::channel(1);
    let driving = async {
        let mut messages = futures::stream::poll_fn(|cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if matches!(message, AsyncMessage::Notification(_)) {
                // One pending notification suffices, because following reads the newest state.
                let _ = sender.try_send(());
            }
        }
    };
    tokio::select! {
        () = driving => Err(QueryError::Ended),
        () = wait_until_silent(&client) => Err(QueryError::Silent),
        followed = follow_notifications(projection, connecting, &client, &mut notified) => followed,
    }
}

/// Returns when the server does not reply to a heartbeat in time.
async fn wait_until_silent(client: &tokio_postgres::Client) {
    while let Ok(Ok(_)) = tokio::time::timeout(BEAT_TIMEOUT, client.simple_query("")).await {
        tokio::time::sleep(BEAT).await;
    }
}

async fn follow_notifications(
    projection: &Projection,
    connecting: &ConnectionSettings,
    client: &tokio_postgres::Client,
    notified: &mut mpsc::Receiver<()>,
) -> Result<(), QueryError> {
    // A replica does not support `listen`, so polling alone follows.
    if let Err(error) = client.batch_execute("listen projection").await {
        tracing::info!("no notifications here, polling: {}", store::db::error_chain(&error));
    }
    let bounded = connecting.timeout * 2;
    loop {
        tokio::time::timeout(bounded, projection.switch_to_active(client, connecting))
            .await
            .map_err(|_| QueryError::Silent)??;
        projection.reachable.store(true, Ordering::Relaxed);
        if let Ok(None) = tokio::time::timeout(POLL, notified.recv()).await {
            return Err(QueryError::Ended);
        }
    }
}
