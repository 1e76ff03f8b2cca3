//! Whether a call may pass: credential, tier, rate, quota, in one decision.
//!
//! Invariants: [`Access`] in a handler's signature is the only way to data; parameters are read before anything is
//! charged and reported after; when the store does not decide, the answer is 503, never data.

mod account_cache;
mod accounts;
mod admission;
mod bucket;
mod caller;
mod clock;
mod connection;
mod counter;
mod counts;
mod credential;
mod decision;
mod extractor;
mod gate;
pub(crate) mod headers;
mod limiter;
mod row_version;
mod store;
pub(crate) mod throttle;

pub(crate) use admission::Admission;
pub(crate) use caller::{Caller, Entry};
pub(crate) use credential::{Secret, scrub};
pub(crate) use decision::AdmissionError;
pub(crate) use extractor::{Access, Showcase};
pub(crate) use gate::{Free, Gate, Professional, Starter};
