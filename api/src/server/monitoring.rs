//! Metrics source of the API: counters, gauges read on scrape, health.

use std::sync::Arc;

use prometheus::proto::MetricFamily;
use telemetry::listener::MetricsSource;

use crate::app::state::App;
use crate::connection::Registry;
use crate::metrics::Levels;

/// Metrics source: application state and connections.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) app: App,
    pub(crate) registry: Arc<Registry>,
}

impl MetricsSource for Seen {
    fn metrics(&self) -> Vec<MetricFamily> {
        let pools = self.app.projection.pin().map(|generation| generation.pools());
        let [reads, costly] = pools.unwrap_or_default();
        let (queue, connections) = (self.app.admission.waiting(), self.registry.count());
        self.app.metrics.families(&Levels { queue, connections, reads, costly })
    }

    fn health(&self) -> Result<(), String> {
        if !self.app.projection.reachable() {
            return Err("Postgres does not answer, so reads are not served".to_owned());
        }
        self.app.projection.pin().map(drop).map_err(|error| error.to_string())
    }
}
