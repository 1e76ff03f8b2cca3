//! Metrics and health of a watch or a pull: rows loaded, and connection to the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::Utc;
use prometheus::proto::MetricFamily;
use prometheus::{
    IntCounter, IntCounterVec, IntGaugeVec, Registry, register_int_counter_vec_with_registry,
    register_int_counter_with_registry, register_int_gauge_vec_with_registry,
};
use telemetry::listener::MetricsSource;

use crate::load::report::Summary;
use crate::pull::PullReport;

/// Kind label of rejects, which have no kind.
const REJECT: &str = "reject";
/// Time without a connection to the log after which the program is unhealthy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Metric handles, and the time of the lost connection.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    rows: IntCounterVec,
    rejects: IntCounterVec,
    loaded: IntGaugeVec,
    refused: IntCounter,
    calls: IntCounterVec,
    failed: IntCounterVec,
    away_since: Mutex<Option<Instant>>,
}

impl Metrics {
    /// Creates the metrics with zero values.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let feeds = ["source", "kind"];
        Ok(Self {
            rows: register_int_counter_vec_with_registry!(
                "dds_feed_rows_total",
                "Rows of the feed that this program loaded.",
                &feeds,
                registry
            )?,
            rejects: register_int_counter_vec_with_registry!(
                "dds_feed_rejects_total",
                "Rows of the feed that this program refused.",
                &feeds,
                registry
            )?,
            loaded: register_int_gauge_vec_with_registry!(
                "dds_feed_last_load_timestamp_seconds",
                "When this program loaded the feed last.",
                &feeds,
                registry
            )?,
            refused: register_int_counter_with_registry!(
                "dds_feed_refused_files_total",
                "Files of which nothing was loaded.",
                registry
            )?,
            calls: register_int_counter_vec_with_registry!(
                "dds_pull_calls_total",
                "Calls made to the vendor, as its budget counts them.",
                &["connector"],
                registry
            )?,
            failed: register_int_counter_vec_with_registry!(
                "dds_pull_failed_total",
                "Requests to the vendor that failed.",
                &["connector"],
                registry
            )?,
            away_since: Mutex::default(),
            registry,
        })
    }

    /// Counts a load.
    pub fn loaded(&self, summary: &Summary) {
        self.reached(true);
        if !summary.already_loaded {
            self.count(&summary.source, summary.rows.iter(), summary.rejects_total);
        }
    }

    /// Counts a round of a pull.
    pub fn pulled(&self, pulled: &PullReport) {
        self.reached(true);
        self.count(&pulled.source, pulled.rows.iter(), pulled.rejects);
        self.refused.inc_by(pulled.refused.len() as u64);
        self.calls.with_label_values(&[&pulled.connector]).inc_by(pulled.calls);
        self.failed.with_label_values(&[&pulled.connector]).inc_by(pulled.failed.len() as u64);
    }

    /// Counts a refused file.
    pub fn refused(&self) {
        self.refused.inc();
    }

    /// Records that the log is unreachable.
    pub fn away(&self) {
        self.reached(false);
    }

    fn count<'a>(&self, source: &str, rows: impl Iterator<Item = (&'a String, &'a u64)>, rejects: u64) {
        for (kind, rows) in rows {
            self.rows.with_label_values(&[source, kind.as_str()]).inc_by(*rows);
            self.loaded.with_label_values(&[source, kind.as_str()]).set(Utc::now().timestamp());
        }
        self.rejects.with_label_values(&[source, REJECT]).inc_by(rejects);
    }

    fn reached(&self, is_there: bool) {
        let mut since = self.away_since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = if is_there { None } else { since.or_else(|| Some(Instant::now())) };
    }
}

impl MetricsSource for Metrics {
    fn metrics(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn health(&self) -> Result<(), String> {
        let since = *self.away_since.lock().unwrap_or_else(PoisonError::into_inner);
        match since.filter(|since| since.elapsed() > PATIENCE) {
            Some(since) => Err(format!("the log was not reached for {} s", since.elapsed().as_secs())),
            None => Ok(()),
        }
    }
}
