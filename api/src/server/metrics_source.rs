//! Metrics source of the API: counters, gauges that are read at each scrape, and health.

use std::sync::Arc;

use prometheus::proto::MetricFamily;
use store::db::error_chain;
use telemetry::listener::MetricsSource;

use crate::app::state::App;
use crate::connection::ConnectionRegistry;
use crate::metrics::GaugeValues;

/// Metrics source: application state and connections.
#[derive(Debug)]
pub(crate) struct ApiMetricsSource {
    pub(crate) app: App,
    pub(crate) registry: Arc<ConnectionRegistry>,
}

impl MetricsSource for ApiMetricsSource {
    fn metrics(&self) -> Vec<MetricFamily> {
        let pools = self.app.projection.pin().map(|generation| generation.pool_usage());
        let [reads, costly] = pools.unwrap_or_default();
        let (queue, connections) = (self.app.admission.waiting_calls(), self.registry.count_by_phase());
        let (replicas, streams) = (self.app.projection.count_replicas(), self.app.streams.count());
        self.app.metrics.gather(&GaugeValues { queue, connections, reads, costly, replicas, streams })
    }

    fn health(&self) -> Result<(), String> {
        if !self.app.projection.is_database_reachable() {
            return Err("Postgres does not answer, so reads are not served".to_owned());
        }
        self.app.projection.pin().map(drop).map_err(|error| error_chain(&error))
    }
}
