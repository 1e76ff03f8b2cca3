//! History of the service: its traffic in 90 days, incidents and planned work.
//!
//! Invariant: requests read the database at most once a minute, however many there are.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use deadpool_postgres::{Pool, PoolError, RecyclingMethod};
use market::decimal::ExactDecimal;
use market::text_enum;
use rust_decimal::Decimal;
use serde::Serialize;
use store::db::{add_session_options, error_chain};
use store::{FromRow, find_rows, sql_row, tls};
use telemetry::listener::DURATION_BUCKETS;
use tokio_postgres::{Client, Config, Row};
use utoipa::ToSchema;

use super::traffic_recorder::{DAYS, TrafficRecorder, first_day, start_of};
use crate::concurrency::BackgroundTasks;
use crate::concurrency::refreshed::RefreshedValue;
use crate::metrics::TrafficCounter;
use crate::read::build_pool;

const PERIODS: &str = include_str!("../../queries/status/periods.sql");
const ENDPOINT_GROUPS: &str = include_str!("../../queries/status/endpoint_groups.sql");
const INCIDENTS: &str = include_str!("../../queries/status/incidents.sql");
const MAINTENANCE: &str = include_str!("../../queries/maintenance/list.sql");

/// Number of hours of the short period.
const HOURS: i32 = 24;
const HOURS_OF_DAY: i32 = 24;
/// Maximum number of entries of planned work in a history.
const MAX_LISTED: i64 = 200;
/// Time limit of a statement, and of opening a connection.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Counts are worth neither the wait for a standby nor a long wait for a row.
const SESSION_OPTIONS: &str = "-c statement_timeout=5000 -c lock_timeout=2000 -c synchronous_commit=off";

/// Traffic of the last 90 days, incidents and planned work. Calls of the API and of pages are counted, but not probes,
/// requests for the status, files of pages, unknown addresses, and calls whose client closed the connection before the
/// answer. A call of the MCP server counts as failed only if its HTTP status is 500 or more. Calls of the last two minutes
/// may be missing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ServiceHistory {
    /// Time at which the history was read, in UTC. It is older than two minutes only while the database of the accounts does
    /// not reply.
    pub(crate) as_of: DateTime<Utc>,
    /// All counted calls of the 90 days.
    pub(crate) total: TrafficPeriod,
    /// The 90 days until today, in UTC, oldest first.
    pub(crate) days: Vec<TrafficPeriod>,
    /// The 24 hours until the current hour, oldest first.
    pub(crate) hours: Vec<TrafficPeriod>,
    /// Groups of endpoints with calls in the 90 days, by name.
    pub(crate) endpoint_groups: Vec<EndpointGroup>,
    /// Incidents of the 90 days, newest first; at most 200.
    pub(crate) incidents: Vec<Incident>,
    /// Planned work that is announced, in progress, or ended in the 90 days, latest first; at most 200.
    pub(crate) maintenance: Vec<Maintenance>,
}

/// Counted calls in a period.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TrafficPeriod {
    /// Start of the period, in UTC.
    pub(crate) start: DateTime<Utc>,
    /// Number of calls. 0 means no traffic, for example because no instance ran.
    pub(crate) calls: i64,
    /// Number of calls that were answered with a status of 500 or more.
    pub(crate) failures: i64,
    /// Share of the calls that did not fail, in percent, rounded down; null without calls.
    pub(crate) availability_percent: Option<ExactDecimal>,
}

/// Calls of a group of endpoints.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EndpointGroup {
    /// Name of the group: bulk, changes, dividends, feeds, mcp, pages, portfolio, prices, screeners or securities.
    pub(crate) group: String,
    /// Calls of the last 24 hours, with the current hour.
    pub(crate) last_24_hours: GroupCalls,
    /// Calls of the last 90 days.
    pub(crate) last_90_days: GroupCalls,
}

/// Calls of a group of endpoints in a period. A duration is measured from the head of the request to the head of the
/// response. It is an upper limit from a scale of fixed values; the greatest, 10000 ms, also means longer durations.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct GroupCalls {
    /// Number of calls.
    pub(crate) calls: i64,
    /// Number of calls that were answered with a status of 500 or more.
    pub(crate) failures: i64,
    /// Share of the calls that did not fail, in percent, rounded down; null without calls.
    pub(crate) availability_percent: Option<ExactDecimal>,
    /// Duration that half of the calls did not exceed, in milliseconds; null without calls.
    pub(crate) p50_ms: Option<ExactDecimal>,
    /// Duration that 95 % of the calls did not exceed, in milliseconds; null without calls.
    pub(crate) p95_ms: Option<ExactDecimal>,
}

sql_row! {
    /// Minutes in each of which more than 5 % of the calls failed. Up to five other minutes between two of them, with or
    /// without calls, are part of the incident.
    #[derive(Debug, Clone, Serialize, ToSchema)]
    pub(crate) struct Incident {
        /// Start of the first failing minute, in UTC.
        pub(crate) start: DateTime<Utc>,
        /// End of the last failing minute, in UTC; null if the incident may continue, because this minute ended less than
        /// eight minutes ago.
        pub(crate) end: Option<DateTime<Utc>>,
        /// Number of calls from start to end.
        pub(crate) calls: i64,
        /// Number of these calls that were answered with a status of 500 or more.
        pub(crate) failures: i64,
        /// Share of the calls that failed, in percent.
        pub(crate) failure_percent: ExactDecimal,
    }
}

text_enum! {
    /// State of planned work.
    pub enum MaintenanceState { Planned = "planned", InProgress = "in_progress", Completed = "completed" }
}

sql_row! {
    /// Planned work on the service.
    #[derive(Debug, Clone, Serialize, ToSchema)]
    pub(crate) struct Maintenance {
        /// Id of the planned work.
        pub(crate) id: i64,
        /// Start, in UTC.
        pub(crate) start: DateTime<Utc>,
        /// End, in UTC.
        pub(crate) end: DateTime<Utc>,
        /// State, by the planned times.
        pub(crate) state: MaintenanceState,
        /// Description by the operator.
        pub(crate) description: String,
    }
}

impl TrafficPeriod {
    fn new(start: DateTime<Utc>, calls: i64, failures: i64) -> Self {
        Self { start, calls, failures, availability_percent: availability_percent(calls, failures) }
    }
}

impl FromRow for TrafficPeriod {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self::new(row.try_get("start")?, row.try_get("calls")?, row.try_get("failures")?))
    }
}

impl FromRow for EndpointGroup {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let traffic = |failures, durations| {
            Ok::<_, tokio_postgres::Error>(GroupCalls::new(
                row.try_get(failures)?,
                &row.try_get::<_, Vec<i64>>(durations)?,
            ))
        };
        Ok(Self {
            group: row.try_get("endpoint_group")?,
            last_24_hours: traffic("recent_failures", "recent_durations")?,
            last_90_days: traffic("failures", "durations")?,
        })
    }
}

impl GroupCalls {
    /// `durations` has the calls by bucket of [`DURATION_BUCKETS`].
    fn new(failures: i64, durations: &[i64]) -> Self {
        let calls = durations.iter().sum();
        let [p50_ms, p95_ms] = [50, 95].map(|percent| percentile_ms(durations, percent));
        Self { calls, failures, availability_percent: availability_percent(calls, failures), p50_ms, p95_ms }
    }
}

fn availability_percent(calls: i64, failures: i64) -> Option<ExactDecimal> {
    let percent = Decimal::from(calls - failures) * Decimal::ONE_HUNDRED;
    Some(percent.checked_div(calls.into())?.trunc_with_scale(4).into())
}

/// Upper limit of the bucket that contains a percentile of the durations; `None` without calls.
fn percentile_ms(durations: &[i64], percent: i64) -> Option<ExactDecimal> {
    let calls: i64 = durations.iter().sum();
    let mut up_to = 0;
    let bucket = durations.iter().position(|calls_of_bucket| {
        up_to += calls_of_bucket;
        up_to > 0 && up_to * 100 >= calls * percent
    })?;
    let seconds = DURATION_BUCKETS.get(bucket).or(DURATION_BUCKETS.last())?;
    Some((Decimal::try_from(*seconds).ok()? * Decimal::ONE_THOUSAND).into())
}

/// Finds the planned work that ends after a time, at most `limit` entries.
pub(crate) async fn find_maintenance(
    client: &Client,
    after: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Maintenance>, tokio_postgres::Error> {
    find_rows(client, MAINTENANCE, &[&after, &limit]).await
}

/// Reader of the history.
#[derive(Debug)]
pub(crate) struct HistoryReader {
    pool: Pool,
    latest: RefreshedValue<ServiceHistory>,
}

impl HistoryReader {
    /// Starts the traffic recorder. `config` is the connection of the API's role to the database with the accounts.
    pub(crate) fn start(
        mut config: Config,
        counter: TrafficCounter,
        tasks: &BackgroundTasks,
    ) -> anyhow::Result<Self> {
        add_session_options(&mut config, SESSION_OPTIONS);
        let tls = tls::tls_connector(&config)?;
        let pool = build_pool(config, tls, 1, DATABASE_TIMEOUT, RecyclingMethod::Verified, "")
            .context("cannot create the connection pool of the traffic recorder")?;
        tasks.spawn(TrafficRecorder::new(pool.clone(), counter).run(tasks.stopping()));
        Ok(Self { pool, latest: RefreshedValue::default() })
    }

    /// Latest history; `None` if it could not be read yet. The database is not read while `is_reachable` is false.
    pub(crate) async fn latest(&self, is_reachable: bool, max_wait: Duration) -> Option<Arc<ServiceHistory>> {
        if !is_reachable {
            return self.latest.latest();
        }
        let pool = self.pool.clone();
        let read = || async move {
            read_history(&pool)
                .await
                .inspect_err(|error| {
                    tracing::warn!(error = %error_chain(error), "cannot read the history of the service");
                })
                .ok()
        };
        self.latest.refreshed(max_wait, read).await
    }
}

async fn read_history(pool: &Pool) -> Result<ServiceHistory, PoolError> {
    let client = pool.get().await?;
    let client: &Client = &client;
    let as_of = Utc::now();
    let since = first_day(as_of.date_naive());
    let first_hour = start_of(as_of, TimeDelta::hours(1)) - TimeDelta::hours(i64::from(HOURS) - 1);
    let days: Vec<TrafficPeriod> = find_rows(client, PERIODS, &[&since, &HOURS_OF_DAY, &DAYS]).await?;
    let sum = |count: fn(&TrafficPeriod) -> i64| days.iter().map(count).sum();
    Ok(ServiceHistory {
        as_of,
        total: TrafficPeriod::new(since, sum(|day| day.calls), sum(|day| day.failures)),
        days,
        hours: find_rows(client, PERIODS, &[&first_hour, &1_i32, &HOURS]).await?,
        endpoint_groups: find_rows(client, ENDPOINT_GROUPS, &[&since, &first_hour]).await?,
        incidents: find_rows(client, INCIDENTS, &[&since]).await?,
        maintenance: find_maintenance(client, since, MAX_LISTED).await?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_never_rounded_away_and_no_calls_have_no_share() {
        let shares = [(0, 0), (10_000_000, 1), (3, 1), (5, 5), (5, 0)];
        let shares =
            shares.map(|(calls, failures)| availability_percent(calls, failures).map(ExactDecimal::text));
        let shares = shares.each_ref().map(Option::as_deref);
        assert_eq!(shares, [None, Some("99.9999"), Some("66.6666"), Some("0"), Some("100")]);
    }

    #[test]
    fn a_percentile_is_the_limit_of_its_bucket() {
        let mut durations = vec![0; DURATION_BUCKETS.len() + 1];
        assert!(percentile_ms(&durations, 50).is_none());
        (durations[0], durations[3], durations[15]) = (50, 45, 5);
        let limits =
            [50, 51, 95, 96].map(|percent| percentile_ms(&durations, percent).map(ExactDecimal::text));
        assert_eq!(limits.each_ref().map(Option::as_deref), ["0.25", "2.5", "2.5", "10000"].map(Some));
    }
}
