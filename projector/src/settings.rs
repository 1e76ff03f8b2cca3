//! Settings of the projector, documented by `--help`. Every command has the database settings; some commands have more.

use std::time::Duration;

use clap::Args;
use event_log::stream::StreamSettings;
use store::db::{self, DatabaseSettings, DbError};
use tokio_postgres::Config;

use crate::facts::fact_cache::FactCache;

/// Name of the fact set that follows the log.
pub const LIVE_FACTS: &str = "facts";

/// Maximum idle time of a transaction in a short command, after which Postgres ends the transaction.
const IDLE_TIMEOUT: Duration = Duration::from_secs(6);

/// Maximum idle time of a transaction in a rebuild or review, after which Postgres ends it. Such a transaction is idle
/// while a chunk is derived or the log is read. If the process is stopped, its transaction blocks the projector for at
/// most this time.
const REBUILD_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Connection settings of the database.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// Database connection of the owner. By default, the projector's role uses the same URL with its own user name.
    #[command(flatten)]
    pub owner: DatabaseSettings,
    /// Postgres connection of the projector's role; default: DATABASE_URL with user dds_projector
    #[arg(long, env = "PROJECTOR_DATABASE_URL", hide_env_values = true, global = true)]
    pub projector_database_url: Option<String>,
}

impl DatabaseArgs {
    /// Connection settings of the projector's role. The search path has the fact set `fact_set` and then the control
    /// tables.
    pub fn projector_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.config(fact_set, IDLE_TIMEOUT)
    }

    /// Connection settings like [`DatabaseArgs::projector_config`], for the transactions of a review, which write
    /// nothing. Such a transaction may be idle as long as a transaction of a rebuild.
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
    /// Size of the log messages per transaction, in bytes after decompression
    #[arg(long, env = "PROJECTOR_BATCH_BYTES", default_value_t = 12 * 1024 * 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_bytes: u64,
    /// Memory limit of the process, in bytes. The fact cache stops growing when the process uses 7/8 of this limit, but
    /// not below 128 MiB. Facts that are not cached are read from Postgres at each derivation
    #[arg(long, env = "PROJECTOR_MEMORY", default_value_t = 512 * 1024 * 1024)]
    pub memory: usize,
}

/// Benchmark of a new generation.
#[derive(Debug, Clone, Args)]
pub struct BenchmarkArgs {
    /// Security whose month-end returns are the benchmark of beta
    #[arg(
        long = "benchmark",
        id = "benchmark",
        value_name = "SYMBOL",
        env = "BENCHMARK_SYMBOL",
        default_value = "SPY"
    )]
    pub symbol: String,
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
    /// Connection settings like [`DatabaseArgs::projector_config`]. A transaction may be idle for the lease duration.
    pub fn projector_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.database.config(fact_set, self.lease())
    }

    /// Connection settings like [`DatabaseArgs::projector_config`]. A transaction may be idle while a chunk of
    /// securities is derived, and at least for the lease duration.
    pub fn rebuild_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.database.config(fact_set, REBUILD_IDLE_TIMEOUT.max(self.lease()))
    }

    /// Creates an empty cache of facts, whose budget is the memory limit of the process.
    pub fn fact_cache(&self) -> FactCache {
        FactCache::with_budget(self.applying.memory)
    }

    /// Time after which a lease expires without renewal.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.applying.lease_seconds)
    }
}
