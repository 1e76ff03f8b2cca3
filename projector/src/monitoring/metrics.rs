//! Metrics of the projector: counters and durations of batches, and the polled gauges.
//!
//! Invariant: label values are fixed words, feed names or generations, never symbols.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntGaugeVec, Registry, register_histogram_vec_with_registry,
    register_int_counter_with_registry, register_int_gauge_vec_with_registry,
};
use telemetry::listener::MetricsSource;

use crate::monitoring::gauges::Gauges;

/// Histogram buckets in seconds, for daily batches and for backlogs.
const DURATION_BUCKETS_S: [f64; 12] = [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0];
/// Time a fact set may fail before the health check fails.
const UNHEALTHY_AFTER: Duration = Duration::from_secs(30);

/// Registry and metrics of the projector.
#[derive(Debug)]
pub struct ProjectorMetrics {
    registry: Registry,
    /// Duration of applying a batch's facts.
    pub(crate) apply: Histogram,
    /// Duration of deriving and writing read tables.
    pub(crate) derive: Histogram,
    /// Duration of a commit.
    pub(crate) commit: Histogram,
    /// Number of derived securities.
    pub(crate) derived: IntCounter,
    /// Gauges that are polled independently of batches.
    pub(crate) gauges: Gauges,
    lease_held: IntGaugeVec,
    failing: Mutex<BTreeMap<String, (Instant, String)>>,
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
                "Whether this projector writes the fact set; 0 where it stands by.",
                &["fact_set"],
                registry
            )?,
            gauges: Gauges::new(&registry)?,
            failing: Mutex::default(),
            registry,
        })
    }

    /// Sets the lease gauge of a fact set.
    pub(crate) fn set_lease_held(&self, fact_set: &str, is_held: bool) {
        self.lease_held.with_label_values(&[fact_set]).set(i64::from(is_held));
    }

    /// Records that a fact set is followed, or on standby.
    pub(crate) fn set_healthy(&self, fact_set: &str) {
        self.failing().remove(fact_set);
    }

    /// Records why a fact set cannot be followed.
    pub(crate) fn set_failing(&self, fact_set: &str, reason: String) {
        let mut failing = self.failing();
        failing.entry(fact_set.to_owned()).or_insert_with(|| (Instant::now(), String::new())).1 = reason;
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<String, (Instant, String)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetricsSource for ProjectorMetrics {
    fn metrics(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn health(&self) -> Result<(), String> {
        let failing = self.failing();
        let long = failing.iter().find(|(_, (since, _))| since.elapsed() > UNHEALTHY_AFTER);
        long.map_or(Ok(()), |(fact_set, (since, reason))| {
            Err(format!("fact set {fact_set} failing for {} s: {reason}", since.elapsed().as_secs()))
        })
    }
}
