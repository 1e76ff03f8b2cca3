//! Application state shared by all requests, the state of the dashboard, and the settings of `api serve`.

pub(crate) mod login_throttle;
pub(crate) mod service_history;
pub mod settings;
pub(crate) mod site_address;
mod traffic_recorder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use chrono::{NaiveDate, Utc};
use deadpool_postgres::{Object, Pool, PoolError, RecyclingMethod};
use store::db::add_session_options;
use store::published_files::FileStore;
use store::tls;
use tokio_postgres::Config;

use crate::account::password::PasswordHashing;
use crate::admission::AdmissionQueue;
use crate::admission::open_streams::OpenStreams;
use crate::auth::AccountId;
use crate::auth::address_throttle::AddressThrottle;
use crate::concurrency::limiter::ConcurrencyLimiter;
use crate::concurrency::refreshed::RefreshedValue;
use crate::metrics::ApiMetrics;
use crate::parameters::cursor::CursorSigner;
use crate::parameters::facets::FacetIndex;
use crate::read::build_pool;
use crate::read::changes::JournalReader;
use crate::read::memory_tables::{FeedAge, MemoryTables};
use crate::read::projection::{LagMonitor, Projection};
use crate::render::cache::ResponseCache;
use login_throttle::LoginThrottle;
use service_history::HistoryReader;
use settings::{DashboardSettings, ServeSettings};

/// Shared state of the server.
#[derive(Debug)]
pub struct SharedState {
    pub(crate) settings: ServeSettings,
    pub(crate) projection: Arc<Projection>,
    pub(crate) throttle: AddressThrottle,
    pub(crate) admission: AdmissionQueue,
    pub(crate) response_cache: ResponseCache,
    /// Store with published files; `None` without the setting.
    pub(crate) files: Option<FileStore>,
    /// Limiter of expensive requests.
    pub(crate) expensive_limiter: ConcurrencyLimiter<AccountId>,
    pub(crate) ordinary_requests: OrdinaryRequests,
    pub(crate) memory_tables: MemoryTables,
    pub(crate) signer: CursorSigner,
    pub(crate) lag: LagMonitor,
    /// State of the dashboard; `None` if the dashboard is disabled.
    pub(crate) dashboard: Option<Arc<DashboardState>>,
    pub(crate) metrics: ApiMetrics,
    pub(crate) history: HistoryReader,
    pub(crate) feed_ages: RefreshedValue<Vec<FeedAge>>,
    pub(crate) journal_reader: Arc<JournalReader>,
    pub(crate) streams: Arc<OpenStreams>,
    /// True after the server has received the stop signal.
    pub(crate) draining: AtomicBool,
}

/// Counter of the ordinary (not expensive) API requests in progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrdinaryRequests(Arc<AtomicUsize>);

/// Guard of an ordinary request in progress. The request ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct OrdinaryRequest(OrdinaryRequests);

impl OrdinaryRequests {
    pub(crate) fn begin(&self) -> OrdinaryRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        OrdinaryRequest(self.clone())
    }

    pub(crate) fn is_any_in_progress(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for OrdinaryRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Handle to the shared state.
#[derive(Debug, Clone)]
pub struct App(pub(crate) Arc<SharedState>);

impl std::ops::Deref for App {
    type Target = SharedState;
    fn deref(&self) -> &SharedState {
        &self.0
    }
}

impl App {
    /// Reason why a load balancer should not send requests to this instance; `None` if the instance is ready.
    pub(crate) fn find_unreadiness(&self) -> Option<&'static str> {
        if self.is_draining() {
            return Some("draining: the instance stops");
        }
        if self.projection.lacks_migrations() {
            return Some("schema: migrations are missing; run projector migrate");
        }
        if !self.admission.is_database_reachable() {
            return Some("admission: the database of the accounts cannot decide on API keys");
        }
        let serves = self.projection.is_database_reachable() && self.projection.pin().is_ok();
        (!serves).then_some("reads: the database of the market serves no generation")
    }

    /// True after the server has received the stop signal.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Lookup table of the names that filters accept, for example the names of sectors. If no data can be read, the
    /// table is empty. Filters then accept every name, and the request fails later, in its handler.
    pub(crate) async fn facet_index(&self) -> Arc<FacetIndex> {
        let Ok(generation) = self.projection.pin() else { return Arc::default() };
        self.memory_tables.facet_index(&generation).await.unwrap_or_default()
    }

    /// Current day of the service: the configured day, else today's date in New York.
    pub(crate) fn today(&self) -> NaiveDate {
        self.settings
            .service_date
            .unwrap_or_else(|| Utc::now().with_timezone(&chrono_tz::America::New_York).date_naive())
    }
}

/// Timeout for opening a database connection, and for one statement.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Session timeouts. The first releases the row locks of a process that froze during a transaction. The second limits
/// the wait for a locked row.
const LOCKS: &str = "-c idle_in_transaction_session_timeout=2000 -c lock_timeout=1000";

/// Runtime state of the dashboard.
#[derive(Debug)]
pub(crate) struct DashboardState {
    pub(crate) settings: DashboardSettings,
    pub(crate) hashing: PasswordHashing,
    pub(crate) login_throttle: LoginThrottle,
    pool: Pool,
}

impl DashboardState {
    /// Creates the state. Connections use the dashboard's database role, and are opened on demand.
    pub(crate) fn new(settings: DashboardSettings, mut config: Config) -> anyhow::Result<Self> {
        let options = format!("{LOCKS} -c statement_timeout={}", DATABASE_TIMEOUT.as_millis());
        add_session_options(&mut config, &options);
        let (tls, connections) =
            (tls::tls_connector(&config)?, usize::try_from(settings.dashboard_connections)?);
        // Each connection is checked before its use: its server may have stopped replying.
        let recycling = RecyclingMethod::Verified;
        let pool = build_pool(config, tls, connections, DATABASE_TIMEOUT, recycling, "")
            .context("cannot create the connection pool of the dashboard")?;
        let hashing = PasswordHashing::new(usize::try_from(settings.passwords_at_once)?);
        Ok(Self { settings, hashing, login_throttle: LoginThrottle::new(pool.clone()), pool })
    }

    pub(crate) async fn database_client(&self) -> Result<Object, PoolError> {
        self.pool.get().await
    }
}
