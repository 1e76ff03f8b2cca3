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

/// Maximum time without a connection to the log. After this time, the health check fails.
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(30);

/// Metrics of `ingest watch` or `ingest pull`, and the time at which the connection to the log was lost.
#[derive(Debug)]
pub struct IngestMetrics {
    registry: Registry,
    rows: IntCounterVec,
    rejects: IntCounterVec,
    loaded: IntGaugeVec,
    refused: IntCounter,
    calls: IntCounterVec,
    failed: IntCounterVec,
    away_since: Mutex<Option<Instant>>,
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
            away_since: Mutex::default(),
            registry,
        })
    }

    /// Records that the log is unreachable.
    pub fn set_log_unreachable(&self) {
        self.away_since().get_or_insert_with(Instant::now);
    }

    /// Counts the rows and rejects of a load. Also records that the log is reachable.
    pub fn count_load(&self, summary: &LoadSummary) {
        *self.away_since() = None;
        if !summary.already_loaded {
            self.count_rows(&summary.source, summary.rows.iter(), summary.rejects_total);
        }
    }

    /// Counts the rows, rejects, refused files, vendor calls and failed requests of a pull. Also records that the log
    /// is reachable.
    pub fn count_pull(&self, pulled: &PullReport) {
        *self.away_since() = None;
        self.count_rows(&pulled.source, pulled.rows.iter(), pulled.rejects);
        self.refused.inc_by(pulled.refused.len() as u64);
        self.calls.with_label_values(&[&pulled.connector]).inc_by(pulled.calls);
        self.failed.with_label_values(&[&pulled.connector]).inc_by(pulled.failed.len() as u64);
    }

    /// Counts one file that was refused as a whole.
    pub fn count_refused_file(&self) {
        self.refused.inc();
    }

    /// Time at which the connection to the log was lost; `None` if the log is reachable.
    fn away_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.away_since.lock().unwrap_or_else(PoisonError::into_inner)
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
        match self.away_since().map(|since| since.elapsed()) {
            Some(away) if away > UNREACHABLE_LIMIT => {
                Err(format!("cannot reach the log for {} s", away.as_secs()))
            }
            _ => Ok(()),
        }
    }
}
