//! Request to admit one call, and the decision on it.

use std::sync::Arc;

use chrono::Utc;
use store::db::DbError;

use crate::admission::token_bucket::{Bucket, CALL, RemainingLimits};
use crate::auth::credential::PresentedKey;
use crate::auth::ids::{AccountId, KeyId};
use crate::auth::tier::Tier;

/// Request to admit one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionRequest {
    pub(crate) key: PresentedKey,
    /// Minimum tier that the call needs, as a rank.
    pub(crate) required_rank: i16,
    /// True if the call counts against the quota.
    pub(crate) counted: bool,
}

/// Verdict on a call with a known key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionVerdict {
    Passed,
    Tier,
    Rate,
    Quota,
}

/// Decision on a call with a known key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdmissionDecision {
    pub(crate) account: AccountId,
    pub(crate) key: KeyId,
    pub(crate) tier: Tier,
    pub(crate) verdict: AdmissionVerdict,
    /// True if the call was charged to the quota.
    pub(crate) counted: bool,
    pub(crate) usage: RemainingLimits,
}

impl AdmissionDecision {
    /// Decision for a call of the service itself, which is not charged.
    pub(crate) fn uncharged(tier: Tier) -> Self {
        let bucket = Bucket { rate_per_minute: 1, capacity: 1, tokens: CALL };
        let usage = RemainingLimits { bucket, now: Utc::now(), quota: 0, used: 0, month: 0..1 };
        Self {
            account: AccountId(0),
            key: KeyId(0),
            tier,
            verdict: AdmissionVerdict::Passed,
            counted: false,
            usage,
        }
    }
}

/// Reason for a missing decision. One failure may concern all waiting calls, so the type is `Clone`.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error("the admission queue is full")]
    QueueFull,
    #[error("the admission worker has stopped")]
    Ended,
    #[error("the database did not respond in time")]
    Timeout,
    #[error("concurrent changes of the account prevented a decision")]
    Contended,
    #[error("the database returned a key that was not requested")]
    UnrequestedKey,
    #[error("the connection to the database was lost")]
    ConnectionLost(#[source] Arc<tokio_postgres::Error>),
    #[error("the database refused a statement")]
    Statement(#[source] Arc<tokio_postgres::Error>),
    #[error("cannot connect to the database")]
    NoConnection(#[source] Arc<DbError>),
}

impl From<DbError> for AdmissionError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Unanswered { .. } => Self::Timeout,
            error => Self::NoConnection(error.into()),
        }
    }
}

impl From<tokio_postgres::Error> for AdmissionError {
    fn from(error: tokio_postgres::Error) -> Self {
        if error.is_closed() { Self::ConnectionLost(error.into()) } else { Self::Statement(error.into()) }
    }
}
