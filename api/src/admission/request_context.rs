//! Admission context of one request: client address, route, and limits for the response headers. The
//! request extensions contain it for the handler and for the middleware that writes the headers.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::http::Extensions;

use crate::admission::decision::{AdmissionDecision, AdmissionVerdict};
use crate::admission::token_bucket::RemainingLimits;
use crate::auth::address_throttle::RemainingCalls;
use crate::auth::ids::{AccountId, KeyId};
use crate::connection::ClientConnection;

/// Context of a request: its client, its route, and its admission decision.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// Client address to which the limits apply.
    pub(crate) client: IpAddr,
    /// True if the request came through a trusted proxy.
    pub(crate) is_proxied: bool,
    connection: Arc<ClientConnection>,
    route: OnceLock<MatchedPath>,
    limits: OnceLock<ReportedLimits>,
}

/// Limits in the response headers. If none is set, the headers report the remaining calls of the client address.
#[derive(Debug, Clone)]
pub(crate) enum ReportedLimits {
    /// Number of further failed credentials before the client address is refused.
    FailedCredentials(RemainingCalls),
    Account(AccountCharge),
}

/// Account, key and remaining limits of a request with a known key. The request may be admitted or refused.
#[derive(Debug, Clone)]
pub(crate) struct AccountCharge {
    pub(crate) account: AccountId,
    pub(crate) key: KeyId,
    pub(crate) usage: RemainingLimits,
    /// True if the call was charged to the quota.
    pub(crate) counted: bool,
    pub(crate) quota_refused: bool,
}

impl From<&AdmissionDecision> for AccountCharge {
    fn from(decision: &AdmissionDecision) -> Self {
        Self {
            account: decision.account,
            key: decision.key,
            usage: decision.usage.clone(),
            counted: decision.counted,
            quota_refused: decision.verdict == AdmissionVerdict::Quota,
        }
    }
}

impl RequestContext {
    /// Creates the context of a request that has no route and no decision yet.
    pub(crate) fn new(client: IpAddr, is_proxied: bool, connection: Arc<ClientConnection>) -> Arc<Self> {
        let (route, limits) = Default::default();
        Arc::new(Self { client, is_proxied, connection, route, limits })
    }

    /// Context in a request's extensions; `None` for a request without a connection.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<&Arc<Self>> {
        extensions.get::<Arc<Self>>()
    }

    /// Records the matched route.
    pub(crate) fn set_route(&self, route: &MatchedPath) {
        // Only the first route is stored. An API call by a tool or a feed keeps the route of the outer request.
        let _ = self.route.set(route.clone());
    }

    /// Matched route; `None` without a match.
    pub(crate) fn route(&self) -> Option<&MatchedPath> {
        self.route.get()
    }

    /// Records the decision on a known key.
    pub(crate) fn set_decision(&self, admitted: &AdmissionDecision) {
        self.connection.record_valid_key();
        self.set(ReportedLimits::Account(AccountCharge::from(admitted)));
    }

    /// Records the number of further failed credentials before the client address is refused.
    pub(crate) fn set_remaining_failures(&self, left: RemainingCalls) {
        self.set(ReportedLimits::FailedCredentials(left));
    }

    fn set(&self, limits: ReportedLimits) {
        // A request has only one admission decision, so the limits are not set yet.
        let _ = self.limits.set(limits);
    }

    /// Limits for the response headers; `None` if neither a decision nor a failed credential was recorded.
    pub(crate) fn limits(&self) -> Option<&ReportedLimits> {
        self.limits.get()
    }

    /// Account, key and remaining limits of the request; `None` without a decision on a known key.
    pub(crate) fn charge(&self) -> Option<&AccountCharge> {
        match self.limits()? {
            ReportedLimits::Account(charge) => Some(charge),
            ReportedLimits::FailedCredentials(_) => None,
        }
    }
}
