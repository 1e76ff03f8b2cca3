//! Admission context of one request: client address, route, and limits for the response headers. It is a request
//! extension. The handler and the middleware that writes the headers use it.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::http::Extensions;

use crate::admission::decision::AdmissionDecision;
use crate::auth::address_throttle::RemainingCalls;
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
    /// Number of invalid credentials that the client address may still send.
    FailedCredentials(RemainingCalls),
    /// Decision on a known key. The request may be admitted or refused.
    Account(AdmissionDecision),
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
        // Only the first route is stored. An MCP tool, or a feed such as `/calendar.ics`, calls API endpoints within
        // its request. The request keeps the route of the tool or feed.
        let _ = self.route.set(route.clone());
    }

    /// Matched route; `None` without a match.
    pub(crate) fn route(&self) -> Option<&MatchedPath> {
        self.route.get()
    }

    /// Records the decision on a known key.
    pub(crate) fn set_decision(&self, admitted: &AdmissionDecision) {
        self.connection.record_valid_key();
        // A request has only one admission decision, so the limits are not set yet.
        let _ = self.limits.set(ReportedLimits::Account(admitted.clone()));
    }

    /// Records how many invalid credentials the client address may still send.
    pub(crate) fn set_remaining_failures(&self, left: RemainingCalls) {
        let _ = self.limits.set(ReportedLimits::FailedCredentials(left));
    }

    /// Limits for the response headers; `None` if neither a decision nor a failed credential was recorded.
    pub(crate) fn limits(&self) -> Option<&ReportedLimits> {
        self.limits.get()
    }

    /// Decision on a known key; `None` without one.
    pub(crate) fn decision(&self) -> Option<&AdmissionDecision> {
        match self.limits()? {
            ReportedLimits::Account(decision) => Some(decision),
            ReportedLimits::FailedCredentials(_) => None,
        }
    }
}
