//! Database connection of the admission workers, reopened after each loss.
//!
//! Invariant: a call is never refused because of an earlier failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use store::tls::MakeRustlsConnect;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Config;

use crate::admission::admission_store::AdmissionStore;
use crate::admission::decision::AdmissionError;
use crate::admission::round_trips::RoundTrips;
use crate::concurrency::background_tasks::BackgroundTasks;

/// Idle time after which an open connection is checked.
const CHECK: Duration = Duration::from_millis(300);
/// Minimum timeout of a check. It is longer than the default response timeout, because a busy host may delay a reply.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1_200);
/// Number of consecutive failures after which the database is treated as unreachable.
const FAILURES: u32 = 2;
/// Minimum pause between connection attempts.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// Maximum pause between connection attempts.
const MAX_PAUSE: Duration = Duration::from_millis(300);

/// One database connection, used by one caller at a time.
pub(crate) struct StoreConnection {
    config: Config,
    tls: MakeRustlsConnect,
    tasks: BackgroundTasks,
    /// Configured timeout of one database reply.
    configured_timeout: Duration,
    round_trips: RoundTrips,
    /// True while the database is treated as reachable. Connection attempts, checks and decisions update the value.
    pub(crate) reachability: Arc<AtomicBool>,
    checked_at: Instant,
    store: Option<AdmissionStore>,
    /// Connection attempt in progress. It continues after a caller's timeout, so that a later caller can use the
    /// connection to a slow server.
    connecting: Option<JoinHandle<Result<AdmissionStore, AdmissionError>>>,
    /// Earliest time of the next connection attempt.
    next_attempt: Instant,
    pauses: ExponentialBackoff,
    /// Number of consecutive failed decisions since the last reply.
    failures: u32,
}

impl StoreConnection {
    /// Creates a connection that is opened at its first use.
    pub(crate) fn new(
        config: &Config,
        tls: &MakeRustlsConnect,
        configured_timeout: Duration,
        tasks: &BackgroundTasks,
    ) -> Self {
        Self {
            config: config.clone(),
            tls: tls.clone(),
            tasks: tasks.clone(),
            configured_timeout,
            round_trips: RoundTrips::default(),
            reachability: Arc::default(),
            checked_at: Instant::now(),
            store: None,
            connecting: None,
            next_attempt: Instant::now(),
            pauses: reconnect_pauses(),
            failures: 0,
        }
    }

    /// Timeout of one database reply: the configured timeout, or a longer timeout if the measured round trips are long.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.round_trips.response_timeout(self.configured_timeout)
    }

    /// Records a successful round trip: stores its duration, and marks the database as reachable.
    pub(crate) fn record_round_trip(&mut self, round_trip: Duration) {
        self.round_trips.record(round_trip);
        self.checked_at = Instant::now();
        self.failures = 0;
        self.reachability.store(true, Ordering::Relaxed);
    }

    /// Reopens a lost connection and checks it at once. An open connection is checked only if it has been idle for
    /// [`CHECK`].
    pub(crate) async fn check(&mut self) {
        let (limit, was_open) = (CHECK_TIMEOUT.max(self.response_timeout()), self.is_open());
        if was_open && self.checked_at.elapsed() < CHECK {
            return;
        }
        if !was_open && !matches!(timeout(limit, self.open_store()).await, Ok(Ok(_))) {
            self.reachability.store(false, Ordering::Relaxed);
            return;
        }
        let Some(store) = &self.store else { return };
        let sent = Instant::now();
        match timeout(limit, store.check()).await {
            Ok(Ok(())) => self.record_round_trip(sent.elapsed()),
            _ => self.close_unreachable(),
        }
    }

    /// Drops the connection after a failure, because a statement may still run on it. The database is treated as
    /// unreachable after [`FAILURES`] consecutive failures. One failure is enough if no connection was open.
    pub(crate) fn close_after_failure(&mut self) {
        self.failures += 1;
        if self.is_open() && self.failures < FAILURES { self.close() } else { self.close_unreachable() }
    }

    fn close_unreachable(&mut self) {
        self.reachability.store(false, Ordering::Relaxed);
        self.close();
    }

    /// True if there is a connection, and no loss was detected.
    pub(crate) fn is_open(&self) -> bool {
        self.store.as_ref().is_some_and(AdmissionStore::is_open)
    }

    /// Returns the open connection. If there is none, opens a new connection.
    pub(crate) async fn open_store(&mut self) -> Result<&AdmissionStore, AdmissionError> {
        let open = self.store.take().filter(AdmissionStore::is_open);
        let store = match open {
            Some(store) => store,
            None => {
                let store = self.connect().await?;
                self.round_trips.restart(store.round_trip);
                self.checked_at = Instant::now();
                self.pauses = reconnect_pauses();
                // After repeated failures, an open connection does not prove that the database can decide calls. Only a
                // decision or a check proves it.
                if self.failures < FAILURES {
                    self.reachability.store(true, Ordering::Relaxed);
                }
                store
            }
        };
        Ok(self.store.insert(store))
    }

    /// Waits for the connection attempt in progress, which an earlier caller started. If there is none, or if it fails,
    /// starts a new attempt.
    async fn connect(&mut self) -> Result<AdmissionStore, AdmissionError> {
        if let Some(connecting) = &mut self.connecting {
            let connected = connecting.await;
            self.connecting = None;
            if let Ok(Ok(store)) = connected
                && store.is_open()
            {
                return Ok(store);
            }
        }
        tokio::time::sleep_until(self.next_attempt.into()).await;
        // The pause counts from the start of this attempt, because the caller may stop waiting before the attempt ends.
        self.next_attempt = Instant::now() + self.pauses.next().unwrap_or(MAX_PAUSE);
        let attempt = AdmissionStore::open(self.config.clone(), self.tls.clone(), self.tasks.clone());
        let connecting = self.connecting.insert(self.tasks.spawn(attempt));
        let connected = connecting.await;
        self.connecting = None;
        connected.map_err(|_| AdmissionError::Ended)?
    }

    /// Drops the connection, because a statement may still run on it.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }
}

fn reconnect_pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(MIN_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
}
