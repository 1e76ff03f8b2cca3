//! The projector's settings; `--help` is their reference. Every command has the database's; the others belong to the
//! commands that need them.

use std::time::Duration;

use clap::Args;
use event_log::stream::StreamSettings;
use store::db::{self, DatabaseSettings, DbError};
use tokio_postgres::Config;

use crate::facts::fact_cache::FactCache;

/// The fact set that the live generations are derived from.
pub const LIVE_FACTS: &str = "facts";

/// How long a command that does not follow the log may be silent within a transaction.
const IDLE_TIMEOUT: Duration = Duration::from_secs(6);

/// The same for a rebuild, whose transactions are silent while it derives a chunk; one that is stopped as it ends keeps the
/// projector waiting so long.
const REBUILD_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Where the projector's database is.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// Postgres of the owner, from whose address the role's is made when it has none of its own.
    #[command(flatten)]
    pub owner: DatabaseSettings,
    /// Postgres of the projector's role; default: DATABASE_URL with user dds_projector
    #[arg(long, env = "PROJECTOR_DATABASE_URL", hide_env_values = true, global = true)]
    pub projector_database_url: Option<String>,
}

impl DatabaseArgs {
    /// Connection settings of the projector's role; unqualified names are a fact set's tables and bookkeeping.
    pub fn projector_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.config(fact_set, IDLE_TIMEOUT)
    }

    fn config(&self, fact_set: &str, idle: Duration) -> Result<Config, DbError> {
        let owner = self.owner.database_url.as_deref();
        let mut config = db::config_for(
            self.projector_database_url.as_deref(),
            owner,
            db::PROJECTOR_ROLE,
            "PROJECTOR_DATABASE_URL",
        )?;
        // A stopped process must not keep its row locks: the server ends its transaction, a stand-by goes on.
        let idle = idle.as_millis();
        config.options(format!(
            "-c search_path={fact_set},control -c idle_in_transaction_session_timeout={idle} -c work_mem=64MB"
        ));
        Ok(config)
    }
}

/// How the log is applied.
#[derive(Debug, Clone, Args)]
pub struct ApplyArgs {
    /// Where the log is.
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Seconds after which a silent projector may be replaced by a stand-by
    #[arg(long, env = "PROJECTOR_LEASE_SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub lease_seconds: u64,
    /// Bytes of log messages, unpacked, applied in one transaction at most
    #[arg(long, env = "PROJECTOR_BATCH_BYTES", default_value_t = 12 * 1024 * 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_bytes: u64,
    /// Bytes of each fact set's facts held in memory between batches, about; none are added while the process has nearly as many (and more than 128 MiB). What does not fit is read from Postgres every day
    #[arg(long, env = "PROJECTOR_MEMORY", default_value_t = 512 * 1024 * 1024)]
    pub memory: usize,
}

/// What a new generation is measured against.
#[derive(Debug, Clone, Args)]
pub struct BenchmarkArgs {
    /// Security whose month-end returns beta is measured against
    #[arg(
        long = "benchmark",
        id = "benchmark",
        value_name = "SYMBOL",
        env = "BENCHMARK_SYMBOL",
        default_value = "SPY"
    )]
    pub symbol: String,
}

/// Everything that applying the log takes.
#[derive(Debug, Clone)]
pub struct ProjectorSettings {
    /// Where facts and read tables are.
    pub database: DatabaseArgs,
    /// Where the log is.
    pub stream: StreamSettings,
    /// Bytes of log messages, unpacked, applied in one transaction at most.
    pub batch_bytes: u64,
    lease_seconds: u64,
    memory: usize,
}

impl ProjectorSettings {
    /// Applies the log of these settings to this database.
    pub fn new(database: DatabaseArgs, applying: ApplyArgs) -> Self {
        let ApplyArgs { stream, lease_seconds, batch_bytes, memory } = applying;
        Self { database, stream, batch_bytes, lease_seconds, memory }
    }

    /// As [`DatabaseArgs::projector_config`]; a transaction may be silent as long as a lease lasts.
    pub fn projector_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.database.config(fact_set, self.lease())
    }

    /// As [`DatabaseArgs::projector_config`]; a transaction may be silent as long as a chunk takes to derive.
    pub fn rebuild_config(&self, fact_set: &str) -> Result<Config, DbError> {
        self.database.config(fact_set, REBUILD_IDLE_TIMEOUT.max(self.lease()))
    }

    /// Facts that may stay in memory.
    pub fn fact_cache(&self) -> FactCache {
        FactCache::with_budget(self.memory)
    }

    /// How long a lease lasts without renewal.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }
}
