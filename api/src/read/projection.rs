//! Which generation of the read tables is served, and how far it has read the log.
//!
//! Invariants: a request pins one generation for its whole life; a new generation's connections exist before the
//! pointer moves; the version an answer names comes from the answer's own statement.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::NaiveDate;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures::StreamExt;
use store::tls::MakeRustlsConnect;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Config, Row};

use super::ReadError;
use super::batch::Batches;
use crate::auth::tier::Tiers;
use crate::concurrency::tasks::Tasks;
use crate::metrics::PoolUse;
use crate::parameters::served_rules::Method;

const ACTIVE: &str = include_str!("../../queries/projection/active.sql");
const VERSION: &str = include_str!("../../queries/projection/version.sql");
/// The longest a missed notification goes unnoticed.
const POLL: Duration = Duration::from_secs(2);

/// What an answer was made from; names its bytes together with the day that counts as today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) generation: i32,
    /// Last log sequence applied.
    pub(crate) sequence: i64,
    /// Newest session applied.
    pub(crate) as_of: Option<NaiveDate>,
    /// Greater after every derivation: a change of policy derives the same sequence again.
    pub(crate) position: i64,
}

impl Version {
    /// Reads the columns every data statement selects from `version`.
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            generation: row.try_get("version_generation")?,
            sequence: row.try_get("version_sequence")?,
            as_of: row.try_get("version_as_of")?,
            position: row.try_get("version_position")?,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}.{}", self.generation, self.sequence)
    }
}

/// One generation and its connections.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) id: i32,
    pool: Pool,
    batches: Batches,
    version: Arc<RwLock<Version>>,
    method: RwLock<Arc<Method>>,
    /// The same generation by connections of their own, for answers that cost much.
    apart: Option<Arc<Generation>>,
}

impl Generation {
    /// A connection whose tables are this generation's.
    pub(crate) async fn client(&self) -> Result<Object, ReadError> {
        if self.apart.is_some() {
            return Ok(self.pool.get().await?);
        }
        // Expensive requests run on low-priority threads. tokio's blocking threads, which resolve the server's name, would
        // inherit the priority of the thread that starts them, so a worker thread connects.
        let pool = self.pool.clone();
        tokio::spawn(async move { pool.get().await })
            .await
            .map_err(|_| ReadError::GivenUp)?
            .map_err(ReadError::from)
    }

    /// The row of one symbol, looked up together with others'.
    pub(crate) async fn one(
        &self,
        statement: &'static str,
        candidates: Vec<String>,
    ) -> Result<Option<Row>, ReadError> {
        self.batches.one(&self.pool, statement, candidates).await
    }

    /// The same generation for an answer that costs much, so that others find their connections free.
    pub(crate) fn apart(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self.apart.as_ref().unwrap_or(self))
    }

    /// How its connections are used: those for reads, and those for answers that cost much.
    pub(crate) fn pools(&self) -> [PoolUse; 2] {
        let used = |pool: &Pool| {
            let status = pool.status();
            PoolUse { waiting: status.waiting, in_use: status.size.saturating_sub(status.available) }
        };
        [used(&self.pool), used(self.apart.as_ref().map_or(&self.pool, |apart| &apart.pool))]
    }

    /// By which rules its figures were derived.
    pub(crate) fn method(&self) -> Arc<Method> {
        Arc::clone(&self.method.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The newest version seen.
    pub(crate) fn version(&self) -> Version {
        *self.version.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a version; an answer may know it before the notification arrives.
    pub(crate) fn observe(&self, version: Version) {
        let mut known = self.version.write().unwrap_or_else(PoisonError::into_inner);
        if (version.sequence, version.position) >= (known.sequence, known.position) {
            *known = version;
        }
    }
}

/// How to connect.
#[derive(Clone)]
pub(crate) struct Connecting {
    pub(crate) config: Config,
    pub(crate) connections: usize,
    /// Connections for answers that cost much.
    pub(crate) connections_apart: usize,
    pub(crate) timeout: Duration,
    pub(crate) tls: MakeRustlsConnect,
}

impl Connecting {
    /// The settings with session options added.
    fn with_options(&self, options: &str) -> Config {
        let mut config = self.config.clone();
        let existing = config.get_options().unwrap_or_default().to_owned();
        config.options(format!("{existing} {options}").trim());
        config
    }

    fn pool(&self, generation: i32, connections: usize) -> Result<Pool, deadpool_postgres::BuildError> {
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

/// The served generation, shared by every request.
#[derive(Debug)]
pub(crate) struct Projection {
    tasks: Tasks,
    current: RwLock<Option<Arc<Generation>>>,
    tiers: RwLock<Arc<Tiers>>,
    reachable: AtomicBool,
}

impl Projection {
    /// Nothing to serve yet; `tasks` are those that look rows up.
    pub(crate) fn new(tasks: Tasks) -> Self {
        Self { tasks, current: RwLock::default(), tiers: RwLock::default(), reachable: AtomicBool::default() }
    }

    /// The generation a request works with from start to end.
    pub(crate) fn pin(&self) -> Result<Arc<Generation>, ReadError> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone().ok_or(ReadError::NoGeneration)
    }

    /// True if Postgres answered when it was last asked, at most a poll ago.
    pub(crate) fn reachable(&self) -> bool {
        self.reachable.load(Ordering::Relaxed)
    }

    /// By which rules the served figures were derived.
    pub(crate) fn method(&self) -> Arc<Method> {
        self.pin().map_or_else(|_| Arc::default(), |generation| generation.method())
    }

    /// What the tiers allow.
    pub(crate) fn tiers(&self) -> Arc<Tiers> {
        Arc::clone(&self.tiers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the pointer now and follows it.
    async fn follow(
        &self,
        watcher: &tokio_postgres::Client,
        connecting: &Connecting,
    ) -> Result<(), ReadError> {
        let row = watcher.query_opt(ACTIVE, &[]).await?;
        let row = row.ok_or(ReadError::NoneActive)?;
        let id: i32 = row.try_get("generation")?;
        let tiers = Tiers::load(watcher).await?;
        *self.tiers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tiers);
        let generation = match self.pin() {
            Ok(current) if current.id == id => current,
            _ => self.open(id, connecting)?,
        };
        let client = generation.client().await?;
        let statement = client.prepare_cached(VERSION).await?;
        let row = client.query_one(&statement, &[]).await?;
        let version = Version::of(&row)?;
        generation.observe(version);
        *generation.method.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Method::of(&row)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|known| known.id != id) {
            tracing::info!(generation = id, %version, "serving");
            *current = Some(generation);
        }
        Ok(())
    }

    fn open(&self, id: i32, connecting: &Connecting) -> Result<Arc<Generation>, ReadError> {
        let version =
            Arc::new(RwLock::new(Version { generation: id, sequence: 0, as_of: None, position: 0 }));
        let open = |connections, apart| -> Result<_, ReadError> {
            let (pool, version) = (connecting.pool(id, connections)?, Arc::clone(&version));
            let batches = Batches::new(self.tasks.clone());
            Ok(Arc::new(Generation { id, pool, batches, version, method: RwLock::default(), apart }))
        };
        let apart = open(connecting.connections_apart, None)?;
        open(connecting.connections, Some(apart))
    }
}

/// Follows the pointer for as long as the process lives, connecting again whenever the connection is lost.
pub(crate) async fn watch(projection: Arc<Projection>, connecting: Connecting) {
    loop {
        if let Err(error) = watch_once(&projection, &connecting).await {
            projection.reachable.store(false, Ordering::Relaxed);
            tracing::warn!("cannot follow the projection: {error}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn watch_once(projection: &Projection, connecting: &Connecting) -> Result<(), ReadError> {
    let config = connecting.with_options(&format!("-c statement_timeout={}", connecting.timeout.as_millis()));
    let (client, mut connection) = config.connect(connecting.tls.clone()).await?;
    let (sender, mut notified) = mpsc::channel(1);
    let driving = async {
        let mut messages = futures::stream::poll_fn(|cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if matches!(message, AsyncMessage::Notification(_)) {
                // One waiting notification stands for all: following reads the newest state.
                let _ = sender.try_send(());
            }
        }
    };
    tokio::select! {
        () = driving => Err(ReadError::Ended),
        followed = follow_notifications(projection, connecting, &client, &mut notified) => followed,
    }
}

async fn follow_notifications(
    projection: &Projection,
    connecting: &Connecting,
    client: &tokio_postgres::Client,
    notified: &mut mpsc::Receiver<()>,
) -> Result<(), ReadError> {
    // A replica cannot listen; there the poll alone follows.
    if let Err(error) = client.batch_execute("listen projection").await {
        tracing::info!("no notifications here, polling: {}", store::db::error_chain(&error));
    }
    let bounded = connecting.timeout * 2;
    loop {
        tokio::time::timeout(bounded, projection.follow(client, connecting))
            .await
            .map_err(|_| ReadError::Silent)??;
        projection.reachable.store(true, Ordering::Relaxed);
        if let Ok(None) = tokio::time::timeout(POLL, notified.recv()).await {
            return Err(ReadError::Ended);
        }
    }
}
