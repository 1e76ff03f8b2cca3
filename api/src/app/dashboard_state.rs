//! Shared state of the dashboard: database pool, password hashing, login throttle.

use std::time::Duration;

use anyhow::Context;
use deadpool_postgres::{Object, Pool, PoolError, RecyclingMethod};
use store::db::add_session_options;
use store::tls;
use tokio_postgres::Config;

use crate::account::password::PasswordHashing;
use crate::app::dashboard_settings::DashboardSettings;
use crate::app::login_throttle::LoginThrottle;
use crate::read::pool::build_pool;

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
