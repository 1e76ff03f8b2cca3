//! Database connection of the admission workers, reopened after each loss.
//!
//! Invariant: a failure from before a call never answers that call. The connection is tried again for it.

use std::time::Duration;

use store::tls::MakeRustlsConnect;
use tokio::task::JoinHandle;
use tokio_postgres::{Config, Error};

use crate::admission::admission_store::AdmissionStore;
use crate::admission::decision::AdmissionError;
use crate::concurrency::background_tasks::BackgroundTasks;

/// One database connection, used by one caller at a time.
pub(crate) struct StoreConnection {
    config: Config,
    tls: MakeRustlsConnect,
    tasks: BackgroundTasks,
    /// Timeout of one database response.
    pub(crate) response_timeout: Duration,
    store: Option<AdmissionStore>,
    /// Connection attempt in progress. It outlives the timeout of one caller, so a slow server is reached eventually.
    connecting: Option<JoinHandle<Result<AdmissionStore, Error>>>,
}

impl StoreConnection {
    /// Creates a connection that opens at first use.
    pub(crate) fn new(
        config: &Config,
        tls: &MakeRustlsConnect,
        response_timeout: Duration,
        tasks: &BackgroundTasks,
    ) -> Self {
        let (config, tls) = (config.clone(), tls.clone());
        Self { config, tls, tasks: tasks.clone(), response_timeout, store: None, connecting: None }
    }

    /// True if a connection exists and its loss has not been detected.
    pub(crate) fn is_open(&self) -> bool {
        self.store.as_ref().is_some_and(AdmissionStore::is_open)
    }

    /// Open connection; opens a new one if necessary.
    pub(crate) async fn open_store(&mut self) -> Result<&AdmissionStore, AdmissionError> {
        let open = self.store.take().filter(AdmissionStore::is_open);
        let store = match open {
            Some(store) => store,
            None => self.connect().await?,
        };
        Ok(self.store.insert(store))
    }

    /// Waits for the attempt in progress. If an earlier caller's attempt failed, starts another.
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
        let attempt = AdmissionStore::open(self.config.clone(), self.tls.clone(), self.tasks.clone());
        let connecting = self.connecting.insert(self.tasks.spawn(attempt));
        let connected = connecting.await;
        self.connecting = None;
        Ok(connected.map_err(|_| AdmissionError::Ended)??)
    }

    /// Drops the connection, because a statement may still run on it.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }
}
