//! Metrics and health of the commands `ingest watch` and `ingest pull`: loaded rows, and connection to the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::Utc;
use market::event::Kind;
use prometheus::proto::MetricFamily;
use prometheus::{
    IntCounter, IntCounterVec, IntGaugeVec, Registry, register_int_counter_vec_with_registry,
    register_int_counter_with_registry, register_int_gauge_vec_with_registry,
};
use telemetry::listener::MetricsSource;

use crate::load::report::LoadSummary;
use crate::pull::PullReport;

/// Maximum time for which the log cannot be reached or written. After this time, the health check fails.
const FAILURE_LIMIT: Duration = Duration::from_secs(30);

/// Metrics of `ingest watch` or `ingest pull`, and the time since which no load reached the log.
#[derive(Debug)]
pub struct IngestMetrics {
    registry: Registry,
    rows: IntCounterVec,
    rejects: IntCounterVec,
    loaded: IntGaugeVec,
    refused: IntCounter,
    calls: IntCounterVec,
    failed: IntCounterVec,
    log_failure: Mutex<Option<LogFailure>>,
}

/// Failure to load because of the log.
#[derive(Debug)]
struct LogFailure {
    /// Time of the first failure since the last load.
    since: Instant,
    /// Error of the newest failure.
    reason: String,
}

impl IngestMetrics {
    /// Creates the metrics with zero values.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let feeds = ["source", "kind"];
        let counters = |name: &str, help: &str, labels: &[&str]| {
            register_int_counter_vec_with_registry!(name, help, labels, registry)
        };
        Ok(Self {
            rows: counters("dds_feed_rows_total", "Rows of the feed loaded by this program.", &feeds)?,
            rejects: counters(
                "dds_feed_rejects_total",
                "Rejects of the feed in loads of this program.",
                &feeds,
            )?,
            loaded: register_int_gauge_vec_with_registry!(
                "dds_feed_last_load_timestamp_seconds",
                "Time of this program's last load of the feed.",
                &feeds,
                registry
            )?,
            refused: register_int_counter_with_registry!(
                "dds_feed_refused_files_total",
                "Files refused as a whole.",
                registry
            )?,
            calls: counters(
                "dds_pull_calls_total",
                "Calls made to the vendor, in units of its budget.",
                &["connector"],
            )?,
            failed: counters("dds_pull_failed_total", "Requests to the vendor that failed.", &["connector"])?,
            log_failure: Mutex::default(),
            registry,
        })
    }

    /// Records that the log cannot be reached, or stores nothing.
    pub fn set_log_failure(&self, reason: String) {
        let mut failure = self.log_failure();
        let since = failure.as_ref().map_or_else(Instant::now, |failure| failure.since);
        *failure = Some(LogFailure { since, reason });
    }

    /// Counts the rows and rejects of a load. Also records that the log stores messages.
    pub fn count_load(&self, summary: &LoadSummary) {
        *self.log_failure() = None;
        if !summary.already_loaded {
            self.count_rows(&summary.source, summary.rows.iter(), summary.rejects_total);
        }
    }

    /// Counts the rows, rejects, refused files, vendor calls and failed requests of a pull. Also records that the log
    /// stores messages.
    pub fn count_pull(&self, pulled: &PullReport) {
        *self.log_failure() = None;
        self.count_rows(&pulled.source, pulled.rows.iter(), pulled.rejects);
        self.refused.inc_by(pulled.refused.len() as u64);
        self.calls.with_label_values(&[&pulled.connector]).inc_by(pulled.calls);
        self.failed.with_label_values(&[&pulled.connector]).inc_by(pulled.failed.len() as u64);
    }

    /// Counts one file that was refused as a whole.
    pub fn count_refused_file(&self) {
        self.refused.inc();
    }

    fn log_failure(&self) -> MutexGuard<'_, Option<LogFailure>> {
        self.log_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_rows<'a>(&self, source: &str, rows: impl Iterator<Item = (&'a String, &'a u64)>, rejects: u64) {
        for (kind, rows) in rows {
            self.rows.with_label_values(&[source, kind.as_str()]).inc_by(*rows);
            self.loaded.with_label_values(&[source, kind.as_str()]).set(Utc::now().timestamp());
        }
        self.rejects.with_label_values(&[source, Kind::Reject.as_str()]).inc_by(rejects);
    }
}

impl MetricsSource for IngestMetrics {
    fn metrics(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn health(&self) -> Result<(), String> {
        match &*self.log_failure() {
            Some(LogFailure { since, reason }) if since.elapsed() > FAILURE_LIMIT => {
                Err(format!("cannot load for {} s: {reason}", since.elapsed().as_secs()))
            }
            _ => Ok(()),
        }
    }
}
