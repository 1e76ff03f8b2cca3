//! Settings of the projector, documented by `--help`. Every command has the database settings; some commands have more.

use std::time::Duration;

use clap::Args;
use event_log::stream::StreamSettings;
use store::db::{self, DatabaseSettings, DbError};
use tokio_postgres::Config;

use crate::facts::FactCache;

/// Name of the fact set that is created with the database. Most generations are derived from it. A rebuild from the log
/// creates a fact set of its own.
pub const LIVE_FACTS: &str = "facts";

/// Maximum time for which a transaction of a short command may be idle. After this time, Postgres ends the transaction.
const IDLE_TIMEOUT: Duration = Duration::from_secs(6);

/// Maximum time for which a transaction of a rebuild or review may be idle. Such a transaction is idle while a chunk of
/// securities is derived or the log is read. If the process hangs, its open transaction blocks the projector until
/// Postgres ends the transaction after this time.
const REBUILD_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Connection settings of the database.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// Database connection with the role that owns the database. By default, the projector's role uses the same URL
    /// with another user name.
    #[command(flatten)]
    pub owner: DatabaseSettings,
    /// Postgres connection of the projector's role; default: DATABASE_URL with user dds_projector
    #[arg(long, env = "PROJECTOR_DATABASE_URL", hide_env_values = true, global = true)]
    pub projector_database_url: Option<String>,
}

impl DatabaseArgs {
    /// Connection settings of the projector's role. The search path has the schema of the fact set `fact_set` first,
    /// and then the schema `control`.
    pub fn projector_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.config(fact_set, IDLE_TIMEOUT)
    }

    /// Connection settings like [`DatabaseArgs::projector_config`], but a transaction may be idle for two minutes.
    pub fn review_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.config(fact_set, REBUILD_IDLE_TIMEOUT)
    }

    fn config(&self, fact_set: &str, idle: Duration) -> Result<Config, DbError> {
        let owner = self.owner.database_url.as_deref();
        let mut config = db::role_config(
            self.projector_database_url.as_deref(),
            owner,
            db::PROJECTOR_ROLE,
            "PROJECTOR_DATABASE_URL",
        )?;
        // A stopped process must not keep row locks. After the idle limit, the server ends the transaction of the
        // process, so that a standby can continue.
        let idle = idle.as_millis();
        config.options(format!(
            "-c search_path={fact_set},control -c idle_in_transaction_session_timeout={idle} -c work_mem=64MB"
        ));
        Ok(config)
    }
}

/// Settings for applying the log.
#[derive(Debug, Clone, Args)]
pub struct ApplyArgs {
    /// Connection to the log.
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Lease in seconds; a standby may replace a projector that does not renew its lease for this time
    #[arg(long, env = "PROJECTOR_LEASE_SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub lease_seconds: u64,
    /// Approximate maximum size of the log messages in one transaction, in bytes after decompression
    #[arg(long, env = "PROJECTOR_BATCH_BYTES", default_value_t = 12 * 1024 * 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_bytes: u64,
    /// Memory limit of the process, in bytes; 0 disables the fact cache. The cache stops growing when the process uses
    /// more than 7/8 of this limit and more than 128 MiB. Facts that are not cached are read from Postgres at each
    /// derivation
    #[arg(long, env = "PROJECTOR_MEMORY", default_value_t = 512 * 1024 * 1024)]
    pub memory: usize,
}

/// Settings of commands that apply the log.
#[derive(Debug, Clone)]
pub struct ProjectorSettings {
    /// Database of facts and read tables.
    pub database: DatabaseArgs,
    /// Connection to the log, lease, batch size and memory limit.
    pub applying: ApplyArgs,
}

impl ProjectorSettings {
    /// Connection settings like [`DatabaseArgs::projector_config`]. A transaction may be idle for at most the lease
    /// duration.
    pub fn projector_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.database.config(fact_set, self.lease())
    }

    /// Connection settings like [`DatabaseArgs::projector_config`], for a rebuild. A transaction is idle while a chunk
    /// of securities is derived. It may be idle for two minutes or for the lease duration, whichever is longer.
    pub fn rebuild_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.database.config(fact_set, REBUILD_IDLE_TIMEOUT.max(self.lease()))
    }

    /// Creates an empty cache of facts. The memory limit of the process limits its size.
    pub fn fact_cache(&self) -> FactCache {
        FactCache::with_budget(self.applying.memory)
    }

    /// Time after which a lease expires without renewal.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.applying.lease_seconds)
    }
}
