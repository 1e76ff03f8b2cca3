//! Database connection of an admission worker, reopened after each loss.
//!
//! Invariant: a call is never refused because of an earlier failure.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use store::tls::MakeRustlsConnect;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::Config;

use super::admission_store::AdmissionStore;
use super::decision::AdmissionError;
use crate::auth::SharedTiers;
use crate::concurrency::BackgroundTasks;

/// Idle time after which an open connection is checked.
const CHECK: Duration = Duration::from_millis(300);
/// Minimum timeout of a check. It is longer than the default response timeout, because a busy host may delay a reply.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1_200);
/// Number of consecutive failures after which the database is treated as unreachable.
const FAILURES: u32 = 2;
/// Minimum pause before a repeated connection attempt.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// Maximum pause before a repeated connection attempt.
const MAX_PAUSE: Duration = Duration::from_millis(300);

/// One database connection, used by one caller at a time.
pub(crate) struct StoreConnection {
    config: Config,
    tls: MakeRustlsConnect,
    tasks: BackgroundTasks,
    /// Tier table, which each new connection reloads.
    tiers: SharedTiers,
    /// Timeout of one database reply.
    pub(crate) response_timeout: Duration,
    /// True while the database is treated as reachable. Checks and decisions update the value.
    pub(crate) reachability: Arc<AtomicBool>,
    replied_at: Instant,
    store: Option<AdmissionStore>,
    /// Connection attempt in progress. It continues after a caller's timeout, so that a later caller can use the
    /// connection to a slow server.
    connecting: Option<JoinHandle<Result<AdmissionStore, AdmissionError>>>,
    /// Pauses before the next connection attempts.
    pauses: Box<dyn Iterator<Item = Duration> + Send>,
    /// Number of consecutive failures since the last reply.
    failures: u32,
}

impl StoreConnection {
    /// Creates a connection that is opened at its first use.
    pub(crate) fn new(
        config: &Config,
        tls: &MakeRustlsConnect,
        response_timeout: Duration,
        tasks: &BackgroundTasks,
        tiers: &SharedTiers,
    ) -> Self {
        Self {
            config: config.clone(),
            tls: tls.clone(),
            tasks: tasks.clone(),
            tiers: tiers.clone(),
            response_timeout,
            reachability: Arc::default(),
            replied_at: Instant::now(),
            store: None,
            connecting: None,
            pauses: connection_pauses(),
            failures: 0,
        }
    }

    /// Records a reply of the database, which is therefore reachable.
    pub(crate) fn record_reply(&mut self) {
        self.replied_at = Instant::now();
        self.failures = 0;
        self.reachability.store(true, Ordering::Relaxed);
    }

    /// Drops the connection after a failure, because a statement may still run on it. The database is treated as
    /// unreachable after [`FAILURES`] consecutive failures. One failure is enough if no connection was open.
    pub(crate) fn close_after_failure(&mut self) {
        self.failures += 1;
        if !self.is_open() || self.failures >= FAILURES {
            self.reachability.store(false, Ordering::Relaxed);
        }
        self.close();
    }

    /// Reopens a lost connection and checks it at once. An open connection is checked only if it has been idle for
    /// [`CHECK`].
    pub(crate) async fn check(&mut self) {
        if self.is_open() && self.replied_at.elapsed() < CHECK {
            return;
        }
        let limit = CHECK_TIMEOUT.max(self.response_timeout);
        let checking = async { Ok::<_, AdmissionError>(self.open_store().await?.check().await?) };
        match timeout(limit, checking).await {
            Ok(Ok(())) => self.record_reply(),
            _ => {
                self.reachability.store(false, Ordering::Relaxed);
                self.close();
            }
        }
    }

    /// True if there is a connection, and no loss was detected.
    pub(crate) fn is_open(&self) -> bool {
        self.store.as_ref().is_some_and(AdmissionStore::is_open)
    }

    /// Returns the open connection. If there is none, waits for the connection attempt in progress, or starts one.
    pub(crate) async fn open_store(&mut self) -> Result<&AdmissionStore, AdmissionError> {
        let store = match self.store.take().filter(AdmissionStore::is_open) {
            Some(store) => store,
            None => self.connect().await?,
        };
        Ok(self.store.insert(store))
    }

    async fn connect(&mut self) -> Result<AdmissionStore, AdmissionError> {
        let connecting = match &mut self.connecting {
            Some(connecting) => connecting,
            None => {
                let pause = self.pauses.next().unwrap_or(MAX_PAUSE);
                let (config, tls) = (self.config.clone(), self.tls.clone());
                let opening = AdmissionStore::open(config, tls, self.tasks.clone(), self.tiers.clone());
                let attempt = async move {
                    sleep(pause).await;
                    opening.await
                };
                self.connecting.insert(self.tasks.spawn(attempt))
            }
        };
        let connected = connecting.await;
        self.connecting = None;
        let store = connected.map_err(|_| AdmissionError::Ended)??;
        self.pauses = connection_pauses();
        Ok(store)
    }

    /// Drops the connection, because a statement may still run on it.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }
}

/// Pauses before connection attempts. The first attempt is made at once.
fn connection_pauses() -> Box<dyn Iterator<Item = Duration> + Send> {
    let repeated = ExponentialBuilder::default()
        .with_min_delay(MIN_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .with_jitter()
        .without_max_times()
        .build();
    Box::new(iter::once(Duration::ZERO).chain(repeated))
}
