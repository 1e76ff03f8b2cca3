//! Prometheus metrics of the API.
//!
//! Traffic of this instance by group of endpoints, read from the histogram of request durations. Requests do no work for
//! it.
//!
//! Invariant: a label is a route template, a fixed word or a status code. Clients cannot create time series.

use std::collections::BTreeMap;
use std::iter;

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
    register_histogram_vec_with_registry, register_histogram_with_registry,
    register_int_counter_vec_with_registry, register_int_counter_with_registry,
    register_int_gauge_vec_with_registry, register_int_gauge_with_registry,
};
use telemetry::listener::DURATION_BUCKETS;

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

/// Number of counts by duration: one for each bucket of the histogram, and one for longer calls.
const DURATIONS: usize = DURATION_BUCKETS.len() + 1;

/// Beginnings of the route templates that are not counted: probes, the status itself, files of the pages, and requests
/// without a route.
const UNCOUNTED: [&str; 9] = [
    "none",
    "/livez",
    "/readyz",
    "/v1/health",
    "/v1/status",
    "/status",
    "/assets/",
    "/favicon.ico",
    "/robots.txt",
];

/// Groups of endpoints by the beginning of the route template. The first match applies.
const GROUPS: [(&str, &str); 13] = [
    ("/v1/stocks/{symbol}/dividends", "dividends"),
    ("/v1/dividends/", "dividends"),
    ("/v1/stocks/{symbol}/growth", "prices"),
    ("/v1/prices/", "prices"),
    ("/v1/fx", "prices"),
    ("/v1/screener", "screeners"),
    ("/v1/portfolio/", "portfolio"),
    ("/v1/changes", "changes"),
    ("/v1/bulk/", "bulk"),
    ("/v1/", "securities"),
    ("/feed/", "feeds"),
    ("/mcp", "mcp"),
    ("/", "pages"),
];

/// Calls by group of endpoints.
pub(crate) type Traffic = BTreeMap<&'static str, GroupTraffic>;

/// Calls of one group of endpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GroupTraffic {
    /// Calls that were answered with a status of 500 or more.
    pub(crate) failures: i64,
    /// Calls by bucket of [`DURATION_BUCKETS`].
    pub(crate) durations: [i64; DURATIONS],
}

impl GroupTraffic {
    pub(crate) fn calls(&self) -> i64 {
        self.durations.iter().sum()
    }

    /// Adds the calls of `other` if `sign` is 1, or subtracts them if it is -1.
    pub(crate) fn add(&mut self, other: &Self, sign: i64) {
        self.failures += sign * other.failures;
        for (calls, of_other) in self.durations.iter_mut().zip(other.durations) {
            *calls += sign * of_other;
        }
    }
}

/// Counter of the calls of this instance.
#[derive(Debug)]
pub(crate) struct TrafficCounter {
    requests: HistogramVec,
    counted: Traffic,
}

impl TrafficCounter {
    /// Creates a counter that reads `requests`, a histogram with the labels `route` and `status`.
    pub(crate) fn new(requests: HistogramVec) -> Self {
        Self { requests, counted: Traffic::new() }
    }

    /// Calls since the previous use of this function.
    pub(crate) fn count_new_calls(&mut self) -> Traffic {
        let total = read_histogram(&self.requests);
        let mut new = total.clone();
        for (group, earlier) in std::mem::replace(&mut self.counted, total) {
            new.entry(group).or_default().add(&earlier, -1);
        }
        new.retain(|_, traffic| traffic.calls() > 0);
        new
    }
}

fn read_histogram(requests: &HistogramVec) -> Traffic {
    let families = requests.collect();
    let mut traffic = Traffic::new();
    for metric in families.iter().flat_map(|family| family.get_metric()) {
        let label = |name| metric.get_label().iter().find(|label| label.name() == name);
        let [route, status] = ["route", "status"].map(|name| label(name).map_or("", |label| label.value()));
        let Some(group) = find_group(route) else { continue };
        let histogram = metric.get_histogram();
        let up_to = histogram.get_bucket().iter().map(|bucket| bucket.cumulative_count());
        let (mut new, mut below) = (GroupTraffic::default(), 0);
        for (calls, up_to) in
            new.durations.iter_mut().zip(up_to.chain(iter::once(histogram.get_sample_count())))
        {
            *calls = (up_to - below).cast_signed();
            below = up_to;
        }
        if status.starts_with('5') {
            new.failures = new.calls();
        }
        traffic.entry(group).or_default().add(&new, 1);
    }
    traffic
}

/// Group of a route template; `None` if its calls are not counted.
fn find_group(route: &str) -> Option<&'static str> {
    if UNCOUNTED.iter().any(|uncounted| route.starts_with(uncounted)) {
        return None;
    }
    GROUPS.iter().find(|(beginning, _)| route.starts_with(beginning)).map(|(_, group)| *group)
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

    #[test]
    fn only_new_calls_of_counted_routes_are_counted() {
        let options = prometheus::histogram_opts!("requests", "help", DURATION_BUCKETS.to_vec());
        let requests = HistogramVec::new(options, &["route", "method", "status"]).expect("a histogram");
        let observe = |route: &str, status: &str, seconds| {
            requests.with_label_values(&[route, "GET", status]).observe(seconds);
        };
        let mut counter = TrafficCounter::new(requests.clone());
        observe("/v1/stocks/{symbol}/dividends", "200", 0.0004);
        observe("/v1/dividends/calendar", "503", 99.0);
        for uncounted in ["/livez", "/v1/health", "/status", "none"] {
            observe(uncounted, "503", 0.1);
        }
        let first = counter.count_new_calls();
        assert_eq!(first.keys().collect::<Vec<_>>(), [&"dividends"]);
        assert_eq!((first["dividends"].calls(), first["dividends"].failures), (2, 1));
        assert_eq!((first["dividends"].durations[1], first["dividends"].durations[DURATIONS - 1]), (1, 1));
        assert_eq!(counter.count_new_calls(), Traffic::new());
        observe("/v1/dividends/calendar", "404", 0.1);
        observe("/s/{symbol}", "200", 0.1);
        let second = counter.count_new_calls();
        assert_eq!((second["dividends"].calls(), second["dividends"].failures), (1, 0));
        assert_eq!(second["pages"].calls(), 1);
    }
}
