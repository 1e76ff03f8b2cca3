//! Settings of `api serve` and of its dashboard; `--help` is the reference.

use std::net::SocketAddr;
use std::num::ParseIntError;
use std::time::Duration;

use chrono::NaiveDate;
use clap::Args;
use clap::builder::{RangedU64ValueParser, TypedValueParser};
use ipnet::IpNet;
use market::text_enum;
use secrecy::SecretString;
use telemetry::listener::MetricsSettings;

use super::site_address::PublicUrl;
use crate::auth::Tier;
use crate::concurrency::cores;
use crate::concurrency::limiter::ConcurrencyLimits;
use crate::connection::ConnectionCaps;

/// Maximum size of a request head in bytes. It is sufficient for a thousand percent-encoded symbols of maximum length.
pub(crate) const HEAD_BYTES: usize = 96 * 1024;
/// Maximum number of expensive responses of one account that are rendered or sent at the same time.
const MAX_IN_PROGRESS_PER_ACCOUNT: usize = 4;
/// Maximum number of expensive requests of one account, with those that wait.
const MAX_REQUESTS_PER_ACCOUNT: usize = 64;
/// Number of file descriptors reserved for Postgres, NATS, logs and the program itself.
const OTHER_FILES: usize = 128;
/// Maximum value of the rate settings, in calls per minute. It equals one call per microsecond, the time unit of the
/// throttle.
const MAX_CALLS_PER_MINUTE: u64 = 60_000_000;

text_enum! {
    /// Calls that count against the monthly quota.
    pub enum QuotaCheck { All = "all", MinTier = "min_tier" }
}

impl QuotaCheck {
    /// True if a call counts against the quota. `tier` is the minimum tier of the called endpoint.
    pub(crate) fn is_counted(self, tier: Tier) -> bool {
        self == Self::All || tier > Tier::Free
    }
}

/// Settings of the server.
#[derive(Debug, Clone, Args)]
pub struct ServeSettings {
    /// Address on which the server listens
    #[arg(long, env = "API_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Postgres URL of the API's role. Default: DATABASE_URL with the user dds_api
    #[arg(long, env = "API_DATABASE_URL", hide_env_values = true)]
    pub api_database_url: Option<String>,
    /// Postgres URL of the API's role for the database with the accounts. Default: ACCOUNTS_DATABASE_URL with the user
    /// dds_api, else the database of the market data
    #[arg(long, env = "API_ACCOUNTS_DATABASE_URL", hide_env_values = true)]
    pub api_accounts_database_url: Option<String>,
    /// URLs of Postgres replicas for reads, comma-separated. A URL may name several hosts. Keys and limits are never
    /// read from a replica. The primary also serves data that no replica has yet. Default: the primary
    #[arg(long, env = "DATABASE_READ_URLS", hide_env_values = true)]
    pub database_read_urls: Option<String>,
    /// Maximum lag of a replica, for example 500ms or 30s. A replica with a longer lag is not read
    #[arg(long, env = "MAX_REPLICA_AGE", default_value = "30s", value_parser = parse_duration)]
    pub max_replica_age: Duration,
    /// URL of the NATS server that stores the log of all loaded data. It is used only to measure how far the served
    /// data lags behind this log (/v1/health). Default: the lag is not measured
    #[arg(long, env = "NATS_URL", hide_env_values = true)]
    pub nats_url: Option<String>,
    /// Name of the JetStream stream that stores the log
    #[arg(long, env = "NATS_STREAM", default_value = "MARKET")]
    pub nats_stream: String,
    /// Object store with the files of projector publish, as s3://BUCKET/PREFIX. /v1/files has signed addresses of these
    /// files. Environment variables such as AWS_ACCESS_KEY_ID have the credentials. Default: no files
    #[arg(long, env = "FILES_URL")]
    pub files_url: Option<String>,
    /// Address of the metrics endpoint.
    #[command(flatten)]
    pub metrics: MetricsSettings,
    /// Secret that signs pagination cursors. It must be equal on all instances. Default: a random secret; all cursors
    /// then become invalid when the process ends
    #[arg(long, env = "CURSOR_SECRET", hide_env_values = true)]
    pub cursor_secret: Option<SecretString>,
    /// Previous cursor secret. Cursors signed with it are still accepted; new cursors use CURSOR_SECRET
    #[arg(long, env = "CURSOR_SECRET_PREVIOUS", hide_env_values = true)]
    pub cursor_secret_previous: Option<SecretString>,
    /// Date (YYYY-MM-DD) to use as today, for historical data. Default: today's date in New York
    #[arg(long, env = "SERVICE_DATE")]
    pub service_date: Option<NaiveDate>,
    /// Web origins that may call the API from a browser, comma-separated. Default: none
    #[arg(long, env = "CORS_ALLOWED_ORIGINS", value_delimiter = ',')]
    pub cors_allowed_origins: Vec<String>,
    /// Networks of trusted reverse proxies, comma-separated. Only their X-Forwarded-For headers are used. Default:
    /// none
    #[arg(long, env = "TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpNet>,
    /// Limit per client address, in calls per minute. It applies to calls with and without a key
    #[arg(long, env = "ADDRESS_CALLS_PER_MINUTE", default_value_t = 6_000, value_parser = clap::value_parser!(u64).range(1..=MAX_CALLS_PER_MINUTE))]
    pub address_calls_per_minute: u64,
    /// Burst per client address, in calls
    #[arg(long, env = "ADDRESS_CALLS_BURST", default_value_t = 6_000, value_parser = clap::value_parser!(u64).range(1..=MAX_CALLS_PER_MINUTE))]
    pub address_calls_burst: u64,
    /// Limit per client address for requests without a valid key, in requests per minute
    #[arg(long, env = "ADDRESS_FAILURES_PER_MINUTE", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=MAX_CALLS_PER_MINUTE))]
    pub address_failures_per_minute: u64,
    /// Burst per client address for requests without a valid key, in requests
    #[arg(long, env = "ADDRESS_FAILURES_BURST", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..=MAX_CALLS_PER_MINUTE))]
    pub address_failures_burst: u64,
    /// Calls that count against the monthly quota: all (every call with a key) or min_tier (only endpoints that need a
    /// paid tier)
    #[arg(long, env = "QUOTA_CHECK", default_value = "all")]
    pub quota_check: QuotaCheck,
    /// Number of worker threads. With several instances on one host, divide the cores between them
    #[arg(long, env = "API_WORKERS", default_value_t = cores(), value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub workers: usize,
    /// Size of the response cache, in MiB
    #[arg(long, env = "API_CACHE_MIB", default_value_t = 64)]
    pub cache_mib: u64,
    /// Number of Postgres connections for reads
    #[arg(long, env = "API_READ_CONNECTIONS", default_value_t = 8)]
    pub read_connections: usize,
    /// Number of Postgres connections for expensive responses (bulk, long ranges). It also limits how many of these
    /// responses are rendered at the same time. Default: half of the cores, so that other requests are not delayed
    #[arg(long, env = "API_COSTLY_CONNECTIONS", default_value_t = (cores() / 2).max(1))]
    pub costly_connections: usize,
    /// Maximum wait of an expensive request for its turn, in milliseconds (accounts take turns). After this time the
    /// response is 503
    #[arg(long = "turn-timeout-ms", env = "API_TURN_TIMEOUT_MS", value_name = "TURN_TIMEOUT_MS", default_value = "20000", value_parser = parse_milliseconds)]
    pub permit_timeout: Duration,
    /// Timeout of a connection attempt to Postgres and of a statement, in milliseconds
    #[arg(long = "read-timeout-ms", env = "API_READ_TIMEOUT_MS", value_name = "READ_TIMEOUT_MS", default_value = "5000", value_parser = parse_milliseconds)]
    pub read_timeout: Duration,
    /// Timeout of the check of a key and its limits, in milliseconds. After this time the response is 503. A
    /// check takes one round trip to the database
    #[arg(long = "admission-timeout-ms", env = "API_ADMISSION_TIMEOUT_MS", value_name = "ADMISSION_TIMEOUT_MS", default_value = "250", value_parser = parse_milliseconds)]
    pub admission_timeout: Duration,
    /// Timeout of a request in milliseconds. The wait of an expensive request for its turn is not counted. After this
    /// time the response is 503
    #[arg(long = "request-timeout-ms", env = "API_REQUEST_TIMEOUT_MS", value_name = "REQUEST_TIMEOUT_MS", default_value = "10000", value_parser = parse_milliseconds)]
    pub request_timeout: Duration,
    /// Time for which the server still accepts requests after a stop signal, for example 500ms or 5s. During this time,
    /// /readyz reports 503, and a keep-alive connection is closed after its next response. Choose more than two check
    /// intervals of the load balancer
    #[arg(long, env = "API_DRAIN_DELAY", default_value = "0s", value_parser = parse_duration)]
    pub drain_delay: Duration,
    /// Timeout for open requests after the drain delay, in milliseconds
    #[arg(long = "drain-timeout-ms", env = "API_DRAIN_TIMEOUT_MS", value_name = "DRAIN_TIMEOUT_MS", default_value = "10000", value_parser = parse_milliseconds)]
    pub drain_timeout: Duration,
    /// Maximum number of client connections. The maximum is lower if the process may open only few files
    #[arg(long, env = "API_MAX_CONNECTIONS", default_value_t = 10_000)]
    pub max_connections: usize,
    /// Maximum number of connections per client address. It does not apply to trusted proxies
    #[arg(long, env = "API_ADDRESS_CONNECTIONS", default_value_t = 4_096)]
    pub address_connections: usize,
    /// Maximum number of connections per client address while none of them has sent a valid key
    #[arg(long, env = "API_ADDRESS_CONNECTIONS_WITHOUT_KEY", default_value_t = 256)]
    pub address_connections_without_key: usize,
    /// Timeout of a connection without a request, in milliseconds. It ends when the head of a request is complete
    #[arg(long = "idle-timeout-ms", env = "API_IDLE_TIMEOUT_MS", value_name = "IDLE_TIMEOUT_MS", default_value = "30000", value_parser = parse_milliseconds)]
    pub idle_timeout: Duration,
    /// Timeout in milliseconds for a client to read 64 KiB of a response. If less than 64 KiB is left, the client must
    /// read the rest within this time
    #[arg(long = "write-timeout-ms", env = "API_WRITE_TIMEOUT_MS", value_name = "WRITE_TIMEOUT_MS", default_value = "30000", value_parser = parse_milliseconds)]
    pub write_timeout: Duration,
    /// Maximum number of open change streams of an account on all instances, for the tiers free, starter, premium and
    /// professional
    #[arg(long, env = "CHANGE_STREAMS", default_value = "2,5,10,50", value_parser = parse_stream_limits)]
    pub change_streams: [usize; 4],
    /// Interval of the heartbeats of a change stream without events, in milliseconds
    #[arg(long = "change-stream-heartbeat-ms", env = "CHANGE_STREAM_HEARTBEAT_MS", value_name = "CHANGE_STREAM_HEARTBEAT_MS", default_value = "15000", value_parser = clap::value_parser!(u64).range(100..=600_000).map(Duration::from_millis))]
    pub stream_heartbeat: Duration,
    /// Settings of the dashboard, which is part of the same server.
    #[command(flatten)]
    pub dashboard: DashboardSettings,
}

/// Parses a duration in seconds or milliseconds, such as `5s` or `500ms`. A number without a unit is in seconds.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit): (&str, fn(u64) -> Duration) = match text.strip_suffix("ms") {
        Some(number) => (number, Duration::from_millis),
        None => (text.strip_suffix('s').unwrap_or(text), Duration::from_secs),
    };
    number.parse().map(unit).map_err(|_| "not a duration like 5s or 500ms".to_owned())
}

fn parse_milliseconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

/// Parses four limits of open streams, comma-separated.
fn parse_stream_limits(text: &str) -> Result<[usize; 4], String> {
    let limits: Result<Vec<usize>, _> = text.split(',').map(|limit| limit.trim().parse()).collect();
    let limits = limits.ok().and_then(|limits| limits.try_into().ok());
    limits.ok_or_else(|| "not four comma-separated numbers like 2,5,10,50".to_owned())
}

impl ServeSettings {
    /// Limits on client connections. `files` is the number of file descriptors that the process may open; `None` if
    /// unknown.
    pub(crate) fn connection_caps(&self, files: Option<usize>) -> ConnectionCaps {
        let room = files.map(|files| files.saturating_sub(OTHER_FILES).max(1));
        ConnectionCaps {
            total: room.map_or(self.max_connections, |room| room.min(self.max_connections)),
            by_address_without_key: self.address_connections_without_key,
            by_address: self.address_connections,
        }
    }
    /// Limits on expensive requests.
    pub(crate) fn expensive_limits(&self) -> ConcurrencyLimits {
        ConcurrencyLimits {
            max_working: self.costly_connections,
            max_in_progress_per_key: MAX_IN_PROGRESS_PER_ACCOUNT,
            max_requests_per_key: MAX_REQUESTS_PER_ACCOUNT,
            max_requests: usize::MAX,
            timeout: self.permit_timeout,
        }
    }
}

/// Maximum value of the rate settings, in market pages per minute. It equals one page per microsecond, the time unit of
/// the throttle.
const MAX_PAGES_PER_MINUTE: u64 = 60_000_000;

text_enum! {
    /// Setting that turns the dashboard on or off.
    pub enum DashboardSwitch { On = "on", Off = "off" }
}

text_enum! {
    /// Visitors who may create an account in the dashboard.
    pub enum SignUp {
        /// Any visitor can create an account, with any email address
        Open = "open",
        /// Only visitors with an invitation link from the operator can create an account
        Invited = "invited",
        /// Visitors cannot create an account
        Closed = "closed",
    }
}

text_enum! {
    /// Person who changes the plan of an account.
    pub enum Billing {
        /// The operator changes plans; account holders can request a change
        Off = "off",
        /// Account holders change their own plan, without a payment
        SelfService = "self_service",
    }
}

text_enum! {
    /// Persons who may read the market pages.
    pub enum MarketPages {
        /// The market pages are switched off
        Off = "off",
        /// Only account holders can read the market pages, with the history of their plan
        SignedIn = "signed_in",
        /// Any visitor can read the market pages, with or without an account
        Public = "public",
    }
}

/// Settings of the dashboard.
#[derive(Debug, Clone, Args)]
pub struct DashboardSettings {
    /// Account dashboard and landing page at /: on or off
    #[arg(long, env = "DASHBOARD", default_value = "on")]
    pub dashboard: DashboardSwitch,
    /// Postgres URL of the dashboard's role for the database with the accounts. Default: ACCOUNTS_DATABASE_URL, or
    /// DATABASE_URL, with the user dds_dashboard
    #[arg(long, env = "DASHBOARD_DATABASE_URL", hide_env_values = true)]
    pub dashboard_database_url: Option<String>,
    /// Sign-up in the dashboard: open (any visitor), invited (visitors with an invitation link, created by `api account
    /// invite`) or closed. With open sign-up, the service sends no mail and does not verify that the address belongs to
    /// the visitor
    #[arg(long, env = "SIGN_UP", default_value = "closed")]
    pub sign_up: SignUp,
    /// Plan changes: off (the operator changes plans on request) or self_service (account holders change plans, without
    /// a payment)
    #[arg(long, env = "BILLING", default_value = "off")]
    pub billing: Billing,
    /// Public address of the service, in the form https://host. Default: the host in the request's Host header, with
    /// https if a proxy in TRUSTED_PROXIES sends X-Forwarded-Proto: https
    #[arg(long, env = "PUBLIC_URL")]
    pub public_url: Option<PublicUrl>,
    /// Readers of the market pages (/s/{symbol}, /search, /income): off (none), signed_in (account holders) or public
    /// (anyone). The pages need no API key, and no account is charged for them
    #[arg(long, env = "PAGES", default_value = "off")]
    pub pages: MarketPages,
    /// Plan that sets the depth of history and the blocks of the market pages. Account holders with a higher plan have
    /// the pages of their plan
    #[arg(long, env = "PAGES_TIER", default_value = "free")]
    pub pages_tier: Tier,
    /// Limit per client address, in market pages per minute
    #[arg(long, env = "PAGES_PER_MINUTE", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=MAX_PAGES_PER_MINUTE))]
    pub pages_per_minute: u64,
    /// Burst of market pages per client address
    #[arg(long, env = "PAGES_BURST", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..=MAX_PAGES_PER_MINUTE))]
    pub pages_burst: u64,
    /// Postgres connections of the dashboard
    #[arg(long, env = "DASHBOARD_CONNECTIONS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub dashboard_connections: u32,
    /// Maximum number of password hashes computed at the same time for clients on known devices, and for all other
    /// clients. Each takes 19 MiB of memory and one processor
    #[arg(long, env = "PASSWORDS_AT_ONCE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub passwords_at_once: u32,
}
