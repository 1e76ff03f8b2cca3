//! Monitoring of the projector: metrics of batches, and gauges that a task polls from the servers.
//!
//! Invariants:
//! - Label values are fixed words, feed names or generations, never symbols.
//! - The values of polled gauges describe the servers, not this process. A standby therefore reports the same values.

pub mod poller;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
    register_histogram_vec_with_registry, register_int_counter_vec_with_registry,
    register_int_counter_with_registry, register_int_gauge_vec_with_registry,
    register_int_gauge_with_registry,
};
use telemetry::listener::MetricsSource;

use crate::settings::LIVE_FACTS;

/// Upper bounds of the histogram buckets, in seconds. The small ones are for daily batches, the large ones for
/// backlogs.
const DURATION_BUCKETS_S: [f64; 12] = [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0];
/// Time for which a fact set may fail, or make no progress, before the health check fails.
const UNHEALTHY_AFTER: Duration = Duration::from_secs(30);
/// Maximum time without an answer from Postgres before the health check fails. It is longer than the 30 s that one poll
/// may take.
const UNANSWERED_AFTER: Duration = Duration::from_secs(45);

/// Registry and metrics of the projector.
#[derive(Debug)]
pub struct ProjectorMetrics {
    registry: Registry,
    /// Time to apply the facts of a batch, in seconds.
    pub(crate) apply: Histogram,
    /// Time to derive and write the read tables, in seconds.
    pub(crate) derive: Histogram,
    pub(crate) commit: Histogram,
    /// Number of derived securities.
    pub(crate) derived: IntCounter,
    /// Gauges that are polled independently of batches.
    pub(crate) gauges: Gauges,
    lease_held: IntGaugeVec,
    failing: Mutex<BTreeMap<String, (Instant, String)>>,
    progress: Mutex<ServedProgress>,
    /// Warnings about the log: a replica that lacks messages or is offline, or a failed write.
    log_warnings: Mutex<Vec<String>>,
}

/// Inputs of the health check: the progress of the served generation's fact set, and the last answer from Postgres.
#[derive(Debug)]
struct ServedProgress {
    fact_set: String,
    checkpoint: i64,
    /// Number of log messages that are not yet applied to the fact set.
    pending: i64,
    /// Last time at which the fact set made progress, was paused or had no pending message.
    at: Instant,
    /// Number of batches that are being written.
    writing: u32,
    /// Time of the last answer from Postgres.
    answered: Instant,
}

/// Guard for a batch that is being written. The flag is `true` if the batch belongs to the served generation's fact
/// set. While a guard with this flag exists, the health check does not report a lack of progress.
#[derive(Debug)]
pub(crate) struct WriteInProgress<'a>(&'a ProjectorMetrics, bool);

impl Drop for WriteInProgress<'_> {
    fn drop(&mut self) {
        if self.1 {
            let mut progress = lock(&self.0.progress);
            progress.writing = progress.writing.saturating_sub(1);
            progress.at = Instant::now();
        }
    }
}

impl ProjectorMetrics {
    /// Registers all metrics.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let steps: HistogramVec = register_histogram_vec_with_registry!(
            "dds_projection_batch_duration_seconds",
            "Time of a batch's steps: facts merged (apply), read tables derived and written (derive), commit.",
            &["step"],
            DURATION_BUCKETS_S.to_vec(),
            registry
        )?;
        Ok(Self {
            apply: steps.with_label_values(&["apply"]),
            derive: steps.with_label_values(&["derive"]),
            commit: steps.with_label_values(&["commit"]),
            derived: register_int_counter_with_registry!(
                "dds_projection_derived_securities_total",
                "Securities whose read tables were derived.",
                registry
            )?,
            lease_held: register_int_gauge_vec_with_registry!(
                "dds_lease_held",
                "1 if this projector writes the fact set; 0 if it is on standby.",
                &["fact_set"],
                registry
            )?,
            gauges: Gauges::new(&registry)?,
            failing: Mutex::default(),
            progress: Mutex::new(ServedProgress {
                fact_set: LIVE_FACTS.to_owned(),
                checkpoint: 0,
                pending: 0,
                at: Instant::now(),
                writing: 0,
                answered: Instant::now(),
            }),
            log_warnings: Mutex::default(),
            registry,
        })
    }

    /// Sets the warnings about the log.
    pub(crate) fn set_log_warnings(&self, warnings: Vec<String>) {
        *lock(&self.log_warnings) = warnings;
    }

    /// Sets the lease gauge of a fact set.
    pub(crate) fn set_lease_held(&self, fact_set: &str, is_held: bool) {
        self.lease_held.with_label_values(&[fact_set]).set(i64::from(is_held));
    }

    /// Records that a fact set has no failure: this projector follows it or is on standby for it.
    pub(crate) fn set_healthy(&self, fact_set: &str) {
        lock(&self.failing).remove(fact_set);
    }

    /// Records the reason why this projector cannot follow a fact set.
    pub(crate) fn set_failing(&self, fact_set: &str, reason: String) {
        let mut failing = lock(&self.failing);
        failing.entry(fact_set.to_owned()).or_insert_with(|| (Instant::now(), String::new())).1 = reason;
    }

    /// Records the fact set of the served generation and the checkpoint of this fact set. Also records that Postgres
    /// has just answered.
    pub(crate) fn set_checkpoint(&self, fact_set: &str, checkpoint: i64) {
        let mut progress = lock(&self.progress);
        progress.answered = Instant::now();
        if progress.checkpoint != checkpoint || progress.fact_set != fact_set {
            (progress.checkpoint, progress.at) = (checkpoint, Instant::now());
            fact_set.clone_into(&mut progress.fact_set);
        }
    }

    /// Records the number of log messages that are not applied yet.
    pub(crate) fn set_pending(&self, pending: i64) {
        let mut progress = lock(&self.progress);
        progress.pending = pending;
        if pending == 0 {
            progress.at = Instant::now();
        }
    }

    /// Restarts the stall timeout. Called while `fact_set` is paused, because a pause is not a stall.
    pub(crate) fn record_progress(&self, fact_set: &str) {
        let mut progress = lock(&self.progress);
        if progress.fact_set == fact_set {
            progress.at = Instant::now();
        }
    }

    /// Records the start of the write of a batch. The write ends when the returned guard is dropped.
    pub(crate) fn begin_write(&self, fact_set: &str) -> WriteInProgress<'_> {
        let mut progress = lock(&self.progress);
        let counts = progress.fact_set == fact_set;
        progress.writing += u32::from(counts);
        WriteInProgress(self, counts)
    }

    fn find_stall(&self) -> Option<String> {
        let progress = lock(&self.progress);
        let unanswered = progress.answered.elapsed();
        if unanswered > UNANSWERED_AFTER {
            return Some(format!("Postgres does not answer for {} s", unanswered.as_secs()));
        }
        let (fact_set, stalled) = (&progress.fact_set, progress.at.elapsed());
        let holds_lease = self.lease_held.with_label_values(&[fact_set.as_str()]).get() == 1;
        let lags = holds_lease && progress.pending > 0 && progress.writing == 0;
        (lags && stalled > UNHEALTHY_AFTER).then(|| {
            let (pending, seconds) = (progress.pending, stalled.as_secs());
            format!("fact set {fact_set} lags {pending} messages without progress for {seconds} s")
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MetricsSource for ProjectorMetrics {
    fn metrics(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn warnings(&self) -> Vec<String> {
        lock(&self.log_warnings).clone()
    }

    fn health(&self) -> Result<(), String> {
        if let Some(reason) = self.find_stall() {
            return Err(reason);
        }
        let failing = lock(&self.failing);
        let long = failing.iter().find(|(_, (since, _))| since.elapsed() > UNHEALTHY_AFTER);
        long.map_or(Ok(()), |(fact_set, (since, reason))| {
            Err(format!("fact set {fact_set} failing for {} s: {reason}", since.elapsed().as_secs()))
        })
    }
}

/// Value of the label `kind` for rejected rows.
const REJECT: &str = "reject";

/// Registered gauges and counters.
#[derive(Debug)]
pub(crate) struct Gauges {
    /// 1 if the server named by the label answered the last poll, else 0.
    pub(crate) server_up: IntGaugeVec,
    pub(crate) applied: IntGauge,
    pub(crate) log_last: IntGauge,
    pub(crate) lag: IntGauge,
    pub(crate) as_of: IntGauge,
    pub(crate) database_bytes: IntGauge,
    pub(crate) log_bytes: IntGauge,
    pub(crate) log_messages: IntGauge,
    pub(crate) log_pending: IntGauge,
    pub(crate) log_replicas: IntGaugeVec,
    pub(crate) log_write_failed: IntGauge,
    pub(crate) dead_letters: IntGaugeVec,
    pub(crate) quarantined: IntGaugeVec,
    pub(crate) generation: IntGaugeVec,
    pub(crate) held_runs: IntGaugeVec,
    pub(crate) market_session: IntGauge,
    pub(crate) feed_load: IntGaugeVec,
    pub(crate) feed_session: IntGaugeVec,
    pub(crate) feed_rows: IntCounterVec,
    pub(crate) feed_rejects: IntCounterVec,
}

impl Gauges {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let gauge = |name: &str, help: &str| register_int_gauge_with_registry!(name, help, registry);
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            register_int_gauge_vec_with_registry!(name, help, labels, registry)
        };
        let counters = |name: &str, help: &str| {
            register_int_counter_vec_with_registry!(name, help, &["source", "kind"], registry)
        };
        Ok(Self {
            server_up: gauges("dds_server_up", "1 if the server answered the last poll.", &["server"])?,
            applied: gauge("dds_projection_applied_sequence", "Last message of the log that is applied.")?,
            log_last: gauge("dds_projection_log_last_sequence", "Last message of the log.")?,
            lag: gauge("dds_projection_lag_seconds", "Seconds since everything in the log was applied.")?,
            as_of: gauge(
                "dds_projection_as_of_timestamp_seconds",
                "Newest session that is served, at midnight UTC.",
            )?,
            database_bytes: gauge("dds_database_bytes", "Size of the database, in bytes.")?,
            log_bytes: gauge("dds_log_bytes", "Size of the log on each node, in bytes.")?,
            log_messages: gauge("dds_log_messages", "Messages of the log.")?,
            log_pending: gauge("dds_log_pending", "Messages of the log that are not applied yet.")?,
            log_replicas: gauges("dds_log_replicas", "Copies of the log by state.", &["state"])?,
            log_write_failed: gauge(
                "dds_log_write_failed",
                "1 if NATS could not store a message and has stored none since, for example on a full disk.",
            )?,
            dead_letters: gauges(
                "dds_dead_letters",
                "Messages and rows that could not be applied.",
                &["status"],
            )?,
            quarantined: gauges(
                "dds_quarantined_rows",
                "Implausible rows of the served generation, which no figure uses.",
                &["reason"],
            )?,
            generation: gauges(
                "dds_generation_info",
                "Generations of read tables; the served generation has the state served.",
                &["generation", "method_version", "state"],
            )?,
            held_runs: gauges(
                "dds_held_runs",
                "Loads of the source that wait for a release or an undo. Nothing of them is served.",
                &["source"],
            )?,
            market_session: gauge(
                "dds_market_last_session_timestamp_seconds",
                "Newest session of the exchange's calendar that is over in New York, at midnight UTC.",
            )?,
            feed_load: gauges(
                "dds_feed_last_load_timestamp_seconds",
                "Observation time of the newest load of the feed.",
                &["source", "kind"],
            )?,
            feed_session: gauges(
                "dds_feed_last_session_timestamp_seconds",
                "Newest day of the feed's rows, at midnight UTC.",
                &["source", "kind"],
            )?,
            feed_rows: counters("dds_feed_rows_total", "Rows of the feed in the log.")?,
            feed_rejects: counters("dds_feed_rejects_total", "Rows of the feed that were refused.")?,
        })
    }

    /// Sets the metrics of one source and kind (`labels`). For kind `reject`, `rows` counts the rejected rows.
    pub(crate) fn set_feed(
        &self,
        labels: [&str; 2],
        rows: u64,
        loaded: Option<DateTime<Utc>>,
        newest: Option<NaiveDate>,
    ) {
        let [source, kind] = labels;
        let counter = if kind == REJECT { &self.feed_rejects } else { &self.feed_rows };
        set_counter(&counter.with_label_values(&labels), rows);
        // Create the counter of a feed that has no rejects, so that it is exported as 0.
        self.feed_rejects.with_label_values(&[source, REJECT]).inc_by(0);
        if let Some(loaded) = loaded {
            self.feed_load.with_label_values(&labels).set(loaded.timestamp());
        }
        if let Some(newest) = newest {
            self.feed_session.with_label_values(&labels).set(midnight_timestamp(newest));
        }
    }
}

/// Sets a counter to a sum from the database.
fn set_counter(counter: &IntCounter, sum: u64) {
    if counter.get() > sum {
        counter.reset();
    }
    counter.inc_by(sum - counter.get());
}

/// Midnight UTC of a day, in seconds since 1970.
pub(crate) fn midnight_timestamp(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(metrics: &ProjectorMetrics, by: Duration) {
        let mut progress = lock(&metrics.progress);
        let before = |at: Instant| at.checked_sub(by).unwrap_or(at);
        (progress.at, progress.answered) = (before(progress.at), before(progress.answered));
    }

    #[test]
    fn a_lag_without_progress_is_not_healthy() {
        let metrics = ProjectorMetrics::new().unwrap();
        let of_health = |by: u64| {
            metrics.set_checkpoint(LIVE_FACTS, 7);
            age(&metrics, Duration::from_secs(by));
            metrics.set_checkpoint(LIVE_FACTS, 7);
            metrics.health()
        };
        metrics.set_lease_held(LIVE_FACTS, true);
        assert_eq!(of_health(3600), Ok(()), "nothing is pending");
        metrics.set_pending(2);
        assert!(of_health(31).unwrap_err().contains("lags 2 messages without progress"));
        let writing = metrics.begin_write(LIVE_FACTS);
        assert_eq!(of_health(3600), Ok(()), "a batch is being written");
        drop(writing);
        assert_eq!(metrics.health(), Ok(()));
        assert!(of_health(31).is_err());
        metrics.set_lease_held(LIVE_FACTS, false);
        assert_eq!(of_health(31), Ok(()), "another projector writes");
        age(&metrics, Duration::from_secs(46));
        assert!(metrics.health().unwrap_err().contains("Postgres does not answer"));
    }
}
