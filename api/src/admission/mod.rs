//! Admission: credential, tier, rate limit and quota decided in one statement per batch.
//!
//! Invariants: parameters are parsed before a charge, and their errors are reported after it. Without a decision the
//! response is 503, never data.

pub(crate) mod account_cache;
pub(crate) mod batch;
pub(crate) mod bucket;
pub(crate) mod clock;
pub(crate) mod connection;
pub(crate) mod counter;
pub(crate) mod decision;
pub(crate) mod headers;
pub(crate) mod limiter;
pub(crate) mod queue;
pub(crate) mod request_context;
pub(crate) mod row_version;
pub(crate) mod store;
pub(crate) mod usage_recorder;

pub(crate) use decision::AdmissionError;
pub(crate) use queue::Admission;
pub(crate) use request_context::{Caller, Entry};
