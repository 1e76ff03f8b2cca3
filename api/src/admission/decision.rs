//! Admission demand and decision of one request.

use std::sync::Arc;

use chrono::Utc;

use crate::admission::bucket::{Bucket, Usage};
use crate::auth::credential::Presented;
use crate::auth::tier::Tier;

/// A call to decide on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) key: Presented,
    /// Least rank of the tier.
    pub(crate) need: i16,
    /// True if it counts against the quota.
    pub(crate) counted: bool,
}

/// How a call of a known key is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Tier,
    Rate,
    Quota,
}

/// A decision on a call of a known key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Admitted {
    pub(crate) account: i64,
    /// The key's id; a limiter knows no keys, so whoever asks it fills this in.
    pub(crate) key: i64,
    pub(crate) tier: Tier,
    pub(crate) verdict: Verdict,
    /// True if the quota was charged.
    pub(crate) counted: bool,
    pub(crate) usage: Usage,
}

impl Admitted {
    /// A call of the service itself, charged to nobody.
    pub(crate) fn own() -> Self {
        let bucket = Bucket { rate_per_minute: 1, burst: 1, tokens: 1.0 };
        let usage = Usage { bucket, now: Utc::now(), quota: 0, used: 0, month: 0..1 };
        Self { account: 0, key: 0, tier: Tier::Free, verdict: Verdict::Passed, counted: false, usage }
    }
}

/// What a round with the store brought for one call.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// `None` for a key that is not valid.
    Decided(Option<Admitted>),
    /// Its account was only read, or changed meanwhile.
    Open,
}

/// Why there is no decision; one failure is a whole queue's, so it can be cloned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error("the queue is full")]
    QueueFull,
    #[error("the worker ended")]
    Ended,
    #[error("the store does not answer in time")]
    Silent,
    #[error("others kept changing the account")]
    Contended,
    #[error("a row names no key that was asked for")]
    Misplaced,
    #[error("{0}")]
    ConnectionLost(Arc<str>),
    #[error("{0}")]
    Store(Arc<str>),
}

impl From<tokio_postgres::Error> for AdmissionError {
    fn from(error: tokio_postgres::Error) -> Self {
        let chain = store::db::error_chain(&error).into();
        if error.is_closed() { Self::ConnectionLost(chain) } else { Self::Store(chain) }
    }
}
