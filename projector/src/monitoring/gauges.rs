//! Gauges and counters that are polled from Postgres and the log, for example the applied position.
//!
//! Invariant: the values describe the servers, not this process. A standby therefore reports the same values.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use prometheus::{
    IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, register_int_counter_vec_with_registry,
    register_int_gauge_vec_with_registry, register_int_gauge_with_registry,
};

/// Value of the label `kind` for rejected rows.
const REJECT: &str = "reject";

/// Registered gauges and counters.
#[derive(Debug)]
pub(crate) struct Gauges {
    /// 1 if the server named by the label answered the last poll, else 0.
    pub(crate) server_up: IntGaugeVec,
    pub(crate) applied: IntGauge,
    pub(crate) log_last: IntGauge,
    pub(crate) lag: IntGauge,
    pub(crate) as_of: IntGauge,
    pub(crate) database_bytes: IntGauge,
    pub(crate) log_bytes: IntGauge,
    pub(crate) log_messages: IntGauge,
    pub(crate) log_pending: IntGauge,
    pub(crate) log_replicas: IntGaugeVec,
    pub(crate) log_write_failed: IntGauge,
    pub(crate) dead_letters: IntGaugeVec,
    pub(crate) quarantined: IntGaugeVec,
    pub(crate) generation: IntGaugeVec,
    pub(crate) held_runs: IntGaugeVec,
    pub(crate) market_session: IntGauge,
    pub(crate) feed_load: IntGaugeVec,
    pub(crate) feed_session: IntGaugeVec,
    pub(crate) feed_rows: IntCounterVec,
    pub(crate) feed_rejects: IntCounterVec,
}

impl Gauges {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let gauge = |name: &str, help: &str| register_int_gauge_with_registry!(name, help, registry);
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            register_int_gauge_vec_with_registry!(name, help, labels, registry)
        };
        let counters = |name: &str, help: &str| {
            register_int_counter_vec_with_registry!(name, help, &["source", "kind"], registry)
        };
        Ok(Self {
            server_up: gauges("dds_server_up", "1 if the server answered the last poll.", &["server"])?,
            applied: gauge("dds_projection_applied_sequence", "Last message of the log that is applied.")?,
            log_last: gauge("dds_projection_log_last_sequence", "Last message of the log.")?,
            lag: gauge("dds_projection_lag_seconds", "Seconds since everything in the log was applied.")?,
            as_of: gauge(
                "dds_projection_as_of_timestamp_seconds",
                "Newest session that is served, at midnight UTC.",
            )?,
            database_bytes: gauge("dds_database_bytes", "Size of the database, in bytes.")?,
            log_bytes: gauge("dds_log_bytes", "Size of the log on each node, in bytes.")?,
            log_messages: gauge("dds_log_messages", "Messages of the log.")?,
            log_pending: gauge("dds_log_pending", "Messages of the log that are not applied yet.")?,
            log_replicas: gauges("dds_log_replicas", "Copies of the log by state.", &["state"])?,
            log_write_failed: gauge(
                "dds_log_write_failed",
                "1 if NATS could not store a message and has stored none since, for example on a full disk.",
            )?,
            dead_letters: gauges(
                "dds_dead_letters",
                "Messages and rows that could not be applied.",
                &["status"],
            )?,
            quarantined: gauges(
                "dds_quarantined_rows",
                "Implausible rows of the served generation, which no figure uses.",
                &["reason"],
            )?,
            generation: gauges(
                "dds_generation_info",
                "Generations of read tables; the served generation has the state served.",
                &["generation", "method_version", "state"],
            )?,
            held_runs: gauges(
                "dds_held_runs",
                "Loads of the source that wait for a release or an undo. Nothing of them is served.",
                &["source"],
            )?,
            market_session: gauge(
                "dds_market_last_session_timestamp_seconds",
                "Newest session of the exchange's calendar that is over in New York, at midnight UTC.",
            )?,
            feed_load: gauges(
                "dds_feed_last_load_timestamp_seconds",
                "Observation time of the newest load of the feed.",
                &["source", "kind"],
            )?,
            feed_session: gauges(
                "dds_feed_last_session_timestamp_seconds",
                "Newest day of the feed's rows, at midnight UTC.",
                &["source", "kind"],
            )?,
            feed_rows: counters("dds_feed_rows_total", "Rows of the feed in the log.")?,
            feed_rejects: counters("dds_feed_rejects_total", "Rows of the feed that were refused.")?,
        })
    }

    /// Sets the metrics of one source and kind (`labels`). For kind `reject`, `rows` counts the rejected rows.
    pub(crate) fn set_feed(
        &self,
        labels: [&str; 2],
        rows: u64,
        loaded: Option<DateTime<Utc>>,
        newest: Option<NaiveDate>,
    ) {
        let [source, kind] = labels;
        let counter = if kind == REJECT { &self.feed_rejects } else { &self.feed_rows };
        set_counter(&counter.with_label_values(&labels), rows);
        // Create the counter of a feed that has no rejects, so that it is exported as 0.
        self.feed_rejects.with_label_values(&[source, REJECT]).inc_by(0);
        if let Some(loaded) = loaded {
            self.feed_load.with_label_values(&labels).set(loaded.timestamp());
        }
        if let Some(newest) = newest {
            self.feed_session.with_label_values(&labels).set(midnight_timestamp(newest));
        }
    }
}

/// Sets a counter to a sum from the database.
fn set_counter(counter: &IntCounter, sum: u64) {
    if counter.get() > sum {
        counter.reset();
    }
    counter.inc_by(sum - counter.get());
}

/// Midnight UTC of a day, in seconds since 1970.
pub(crate) fn midnight_timestamp(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp()
}
