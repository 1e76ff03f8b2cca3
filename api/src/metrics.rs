//! Prometheus metrics of the API.
//!
//! Invariant: a label is a route template, a fixed word or a status code. Clients cannot create time series.

pub(crate) mod traffic;

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
    register_histogram_vec_with_registry, register_histogram_with_registry,
    register_int_counter_vec_with_registry, register_int_counter_with_registry,
    register_int_gauge_vec_with_registry, register_int_gauge_with_registry,
};
use telemetry::listener::DURATION_BUCKETS;

use self::traffic::TrafficCounter;

/// Histogram buckets for the number of calls in an admission batch.
const CALLS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1024.0, 2048.0, 4096.0];

/// All metrics of the API.
#[derive(Debug)]
pub(crate) struct ApiMetrics {
    pub(crate) registry: Registry,
    requests: HistogramVec,
    pub(crate) throttled: IntCounter,
    pub(crate) admission: AdmissionMetrics,
    pub(crate) cache: CacheMetrics,
    pub(crate) queue: IntGauge,
    pub(crate) connections: IntGaugeVec,
    pub(crate) pool_waiting: IntGaugeVec,
    pub(crate) pool_in_use: IntGaugeVec,
    pub(crate) replicas: IntGaugeVec,
    pub(crate) servers: IntGaugeVec,
    pub(crate) streams: IntGauge,
}

/// Metrics of admission, which checks the key, tier, rate limit and quota of a call. There is one counter per outcome.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionMetrics {
    pub(crate) passed: IntCounter,
    pub(crate) tier: IntCounter,
    pub(crate) rate: IntCounter,
    pub(crate) quota: IntCounter,
    pub(crate) invalid_key: IntCounter,
    pub(crate) undecided: IntCounter,
    /// Number of calls in a batch. All calls of a batch are checked with one database round trip.
    pub(crate) batch: Histogram,
    /// Duration of the database round trip of a batch, in seconds.
    pub(crate) statement: Histogram,
}

/// Metrics of the response cache.
#[derive(Debug, Clone)]
pub(crate) struct CacheMetrics {
    pub(crate) hits: IntCounter,
    pub(crate) misses: IntCounter,
}

/// Usage of one pool of Postgres connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PoolUse {
    pub(crate) waiting: usize,
    pub(crate) in_use: usize,
}

impl ApiMetrics {
    /// Registers all metrics.
    pub(crate) fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| register_int_counter_with_registry!(name, help, registry);
        let gauge = |name: &str, help: &str| register_int_gauge_with_registry!(name, help, registry);
        let gauges = |name: &str, help: &str, label: &str| {
            register_int_gauge_vec_with_registry!(name, help, &[label], registry)
        };
        Ok(Self {
            requests: register_histogram_vec_with_registry!(
                "dds_http_request_duration_seconds",
                "Time from the request head to the response head.",
                &["route", "method", "status"],
                DURATION_BUCKETS.to_vec(),
                registry
            )?,
            throttled: counter(
                "dds_address_throttled_total",
                "Requests refused by the throttle of their client address.",
            )?,
            admission: AdmissionMetrics::new(&registry)?,
            cache: CacheMetrics {
                hits: counter("dds_cache_hits_total", "Responses served from the cache.")?,
                misses: counter("dds_cache_misses_total", "Responses that were not in the cache.")?,
            },
            queue: gauge("dds_admission_queue_calls", "Calls waiting for an admission decision.")?,
            connections: gauges(
                "dds_connections",
                "Open client connections by state: with a request in progress (working), or without one (idle).",
                "state",
            )?,
            pool_waiting: gauges("dds_pool_waiting", "Requests waiting for a Postgres connection.", "pool")?,
            pool_in_use: gauges("dds_pool_in_use", "Postgres connections in use.", "pool")?,
            replicas: gauges(
                "dds_read_replicas",
                "Postgres replicas by use: read, or left out because they are unreachable or too old.",
                "state",
            )?,
            servers: gauges(
                "dds_server_up",
                "1 if the database answers; postgres has the served data, accounts has keys and limits.",
                "server",
            )?,
            streams: gauge("dds_change_streams", "Open change streams.")?,
            registry,
        })
    }

    /// Counter of the calls that [`ApiMetrics::record_response`] records.
    pub(crate) fn traffic_counter(&self) -> TrafficCounter {
        TrafficCounter::new(self.requests.clone())
    }

    /// Records a response. `route` is `None` if no route matched.
    pub(crate) fn record_response(
        &self,
        route: Option<&MatchedPath>,
        method: &Method,
        status: StatusCode,
        seconds: f64,
    ) {
        let route = route.map_or("none", MatchedPath::as_str);
        self.requests.with_label_values(&[route, method_label(method), status.as_str()]).observe(seconds);
    }
}

impl AdmissionMetrics {
    fn new(registry: &Registry) -> prometheus::Result<Self> {
        let decided: IntCounterVec = register_int_counter_vec_with_registry!(
            "dds_admission_decided_total",
            "Calls with a key, by admission outcome. Undecided calls got a 503.",
            &["outcome"],
            registry
        )?;
        let of = |outcome| decided.with_label_values(&[outcome]);
        Ok(Self {
            passed: of("passed"),
            tier: of("tier"),
            rate: of("rate"),
            quota: of("quota"),
            invalid_key: of("invalid_key"),
            undecided: of("undecided"),
            batch: register_histogram_with_registry!(
                "dds_admission_batch_calls",
                "Calls per admission batch.",
                CALLS.to_vec(),
                registry
            )?,
            statement: register_histogram_with_registry!(
                "dds_admission_statement_duration_seconds",
                "Duration of one admission batch in the database, in seconds.",
                DURATION_BUCKETS.to_vec(),
                registry
            )?,
        })
    }
}

impl CacheMetrics {
    /// Records a cache look-up.
    pub(crate) fn record_lookup(&self, is_hit: bool) {
        if is_hit { self.hits.inc() } else { self.misses.inc() }
    }
}

/// Label of a method. All unknown methods share one label, because clients may send any word.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Converts a number of objects in memory to a gauge value.
pub(crate) fn gauge(count: usize) -> i64 {
    let count = (count as u64).cast_signed();
    debug_assert!(count >= 0, "a count of objects in memory fits into i64");
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_a_client_becomes_a_label() {
        let metrics = ApiMetrics::new().expect("figures");
        for method in ["GET", "BREW", "X-anything"] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            metrics.record_response(None, &method, StatusCode::NOT_FOUND, 0.001);
        }
        let families = metrics.registry.gather();
        let requests = families.iter().find(|family| family.name() == "dds_http_request_duration_seconds");
        assert_eq!(requests.map(|family| family.get_metric().len()), Some(2));
    }
}
