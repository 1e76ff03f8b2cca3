//! Operational metrics and health of the API, for the metrics listener. Gauges are updated at each scrape.

use std::sync::Arc;

use prometheus::proto::MetricFamily;
use store::db::error_chain;
use telemetry::listener::MetricsSource;

use crate::app::state::App;
use crate::connection::ConnectionRegistry;
use crate::metrics::gauge;

/// Source of the API's operational metrics and health. It reads the application state and the client connections.
#[derive(Debug)]
pub(crate) struct ApiMetricsSource {
    pub(crate) app: App,
    pub(crate) registry: Arc<ConnectionRegistry>,
}

impl MetricsSource for ApiMetricsSource {
    fn metrics(&self) -> Vec<MetricFamily> {
        let (app, metrics) = (&self.app, &self.app.metrics);
        metrics.queue.set(gauge(app.admission.waiting_calls()));
        metrics.streams.set(gauge(app.streams.count()));
        for (state, count) in ["working", "idle"].into_iter().zip(self.registry.count_working_and_idle()) {
            metrics.connections.with_label_values(&[state]).set(gauge(count));
        }
        for (state, count) in ["read", "left_out"].into_iter().zip(app.projection.count_replicas()) {
            metrics.replicas.with_label_values(&[state]).set(gauge(count));
        }
        let pools = app.projection.pin().map(|generation| generation.pool_usage());
        for (pool, usage) in ["reads", "costly"].into_iter().zip(pools.unwrap_or_default()) {
            metrics.pool_waiting.with_label_values(&[pool]).set(gauge(usage.waiting));
            metrics.pool_in_use.with_label_values(&[pool]).set(gauge(usage.in_use));
        }
        metrics.registry.gather()
    }

    fn health(&self) -> Result<(), String> {
        if !self.app.projection.is_database_reachable() {
            return Err("Postgres does not answer, so reads are not served".to_owned());
        }
        self.app.projection.pin().map(drop).map_err(|error| error_chain(&error))
    }
}
