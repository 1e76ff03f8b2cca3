//! Traffic of this instance by group of endpoints, read from the histogram of request durations. Requests do no work for
//! it.

use std::collections::BTreeMap;
use std::iter;

use prometheus::HistogramVec;
use prometheus::core::Collector;
use telemetry::listener::DURATION_BUCKETS;

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
