//! Admission of calls: checks of credential, tier, rate limit and quota.
//!
//! The limits of a client act in this order:
//! 1. the connections of its address, when it connects (`connection`);
//! 2. the calls of its address, before the request is routed, and the page views of its address (`auth::address_throttle`);
//! 3. the failed credentials of its address, before its key is looked up (`auth::address_throttle`);
//! 4. the tier, the rate limit of key and account, and the monthly quota, in one SQL statement (`admission_store`);
//! 5. the open change streams of its account (`open_streams`).
//!
//! Attempts to sign in have limits of their own (`app::login_throttle`).
//!
//! Invariants: parameter errors are reported after the charge. Without a decision, the response is 503.

pub(crate) mod admission_queue;
pub(crate) mod admission_store;
pub(crate) mod decision;
pub(crate) mod open_streams;
pub(crate) mod request_context;
pub(crate) mod token_bucket;
pub(crate) mod usage_recorder;

pub(crate) use admission_queue::AdmissionQueue;
pub(crate) use decision::AdmissionError;
pub(crate) use request_context::{ReportedLimits, RequestContext};
