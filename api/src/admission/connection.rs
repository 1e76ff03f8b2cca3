//! The connection to the store, opened again whenever it is lost.
//!
//! Invariant: what failed before a call came is no answer to it; it is tried again for that call.

use std::time::Duration;

use store::tls::MakeRustlsConnect;
use tokio::task::JoinHandle;
use tokio_postgres::{Config, Error};

use crate::admission::decision::AdmissionError;
use crate::admission::store::Store;
use crate::concurrency::tasks::Tasks;

/// One connection, whose users take turns.
pub(crate) struct Connection {
    config: Config,
    tls: MakeRustlsConnect,
    tasks: Tasks,
    /// The longest wait for one answer of the store.
    pub(crate) patience: Duration,
    store: Option<Store>,
    /// Goes on beyond one user's patience, so that a slow server is reached in the end.
    connecting: Option<JoinHandle<Result<Store, Error>>>,
}

impl Connection {
    /// A connection that is opened when it is first used.
    pub(crate) fn new(config: &Config, tls: &MakeRustlsConnect, patience: Duration, tasks: &Tasks) -> Self {
        let (config, tls) = (config.clone(), tls.clone());
        Self { config, tls, tasks: tasks.clone(), patience, store: None, connecting: None }
    }

    /// True if there is a connection that was not lost, as far as is known here.
    pub(crate) fn is_open(&self) -> bool {
        self.store.as_ref().is_some_and(Store::is_open)
    }

    /// The open connection, or a new one.
    pub(crate) async fn store(&mut self) -> Result<&Store, AdmissionError> {
        let open = self.store.take().filter(Store::is_open);
        let store = match open {
            Some(store) => store,
            None => self.connect().await?,
        };
        Ok(self.store.insert(store))
    }

    /// Waits for the attempt that is being made; when an earlier user's fails, makes another.
    async fn connect(&mut self) -> Result<Store, AdmissionError> {
        if let Some(connecting) = &mut self.connecting {
            let connected = connecting.await;
            self.connecting = None;
            if let Ok(Ok(store)) = connected
                && store.is_open()
            {
                return Ok(store);
            }
        }
        let attempt = Store::open(self.config.clone(), self.tls.clone(), self.tasks.clone());
        let connecting = self.connecting.insert(self.tasks.spawn(attempt));
        let connected = connecting.await;
        self.connecting = None;
        Ok(connected.map_err(|_| AdmissionError::Ended)??)
    }

    /// Gives the connection up: a statement may still be at work on it.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }
}
