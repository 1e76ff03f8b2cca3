//! Queries on the read tables. All queries of a request read one generation, which is a complete set of these tables.
//!
//! Postgres connection pools. If a URL has several hosts, each host has its own connection timeout (see
//! [`store::connect`]).
//!
//! Invariant: this module does not depend on HTTP, keys or rate limits.

pub(crate) mod changes;
mod data_version;
mod error;
pub(crate) mod lookup;
pub(crate) mod memory_tables;
pub(crate) mod past_securities;
pub(crate) mod projection;
pub(crate) mod read_source;
mod served_generation;

use std::time::Duration;

use deadpool_postgres::{BuildError, Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures::future::BoxFuture;
use store::connect;
use store::db::DbError;
use store::tls::MakeRustlsConnect;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};

pub(crate) use data_version::DataVersion;
pub(crate) use error::{AmbiguousSymbol, QueryError};
pub(crate) use served_generation::ServedGeneration;

/// Timeout for checking a connection before it is used again.
const RECYCLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Builds a pool. `timeout` limits the wait for a free connection, and also the opening of a new connection. Each new
/// connection first runs the SQL statement `setup`.
pub(crate) fn build_pool(
    config: Config,
    tls: MakeRustlsConnect,
    connections: usize,
    timeout: Duration,
    recycling_method: RecyclingMethod,
    setup: &'static str,
) -> Result<Pool, BuildError> {
    let manager =
        Manager::from_connect(config, HostConnector { tls, setup }, ManagerConfig { recycling_method });
    Pool::builder(manager)
        .max_size(connections)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(timeout))
        .create_timeout(Some(timeout))
        .recycle_timeout(Some(RECYCLE_TIMEOUT))
        .build()
}

/// Connector with a timeout per host.
struct HostConnector {
    tls: MakeRustlsConnect,
    setup: &'static str,
}

impl Connect for HostConnector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let config = config.clone();
        Box::pin(async move {
            match connect::open(&config, &self.tls).await {
                Ok((client, driver)) => {
                    // The driver's error is ignored, because the next statement reports the lost connection.
                    let driving = tokio::spawn(async move {
                        let _ = driver.await;
                    });
                    client.batch_execute(self.setup).await?;
                    Ok((client, driving))
                }
                Err(DbError::Unreachable { source, .. }) => Err(source),
                // Never completes, so that the pool's timeout reports the unresponsive server.
                Err(_) => std::future::pending().await,
            }
        })
    }
}
