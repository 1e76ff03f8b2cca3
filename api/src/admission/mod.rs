//! Admission of calls: checks of credential, tier, rate limit and quota.
//!
//! Invariants: parameter errors are reported after the charge. Without a decision, the response is 503.

pub(crate) mod account_cache;
pub(crate) mod account_limiter;
pub(crate) mod admission_batch;
pub(crate) mod admission_queue;
pub(crate) mod admission_store;
pub(crate) mod decision;
pub(crate) mod limit_headers;
pub(crate) mod open_streams;
pub(crate) mod request_context;
pub(crate) mod round_trips;
pub(crate) mod row_version;
pub(crate) mod store_clock;
pub(crate) mod store_connection;
pub(crate) mod stream_slot;
pub(crate) mod token_bucket;
pub(crate) mod usage_recorder;

pub(crate) use admission_queue::AdmissionQueue;
pub(crate) use decision::AdmissionError;
pub(crate) use request_context::{ReportedLimits, RequestContext};
