//! Admission context of one request: sender, endpoint and decision. It travels in the request extensions to the handler
//! and to the middleware that writes the headers.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::http::Extensions;

use crate::admission::bucket::Usage;
use crate::admission::decision::{Admitted, Verdict};
use crate::auth::throttle::Left;
use crate::connection::Connection;

/// Sender of a request, with its endpoint and admission decision.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Client address used for the limits.
    pub(crate) client: IpAddr,
    /// True if the request came through a trusted proxy.
    pub(crate) is_proxied: bool,
    connection: Arc<Connection>,
    endpoint: OnceLock<MatchedPath>,
    entry: OnceLock<Entry>,
}

/// Limits of the request. Without an entry, the limits of the address apply.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// Remaining failed credentials before a refusal.
    Failures(Left),
    Account(Charge),
}

/// Charge of one call to an account and key.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) account: i64,
    pub(crate) key: i64,
    pub(crate) usage: Usage,
    /// True if the call counted against the quota.
    pub(crate) counted: bool,
    pub(crate) quota_refused: bool,
}

impl Caller {
    /// Creates the sender of an undecided request.
    pub(crate) fn new(client: IpAddr, is_proxied: bool, connection: Arc<Connection>) -> Arc<Self> {
        let (endpoint, entry) = Default::default();
        Arc::new(Self { client, is_proxied, connection, endpoint, entry })
    }

    /// Sender in a request's extensions; `None` for a request without a connection.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Arc<Self>> {
        extensions.get::<Arc<Self>>()
    }

    /// Records the matched route.
    pub(crate) fn reach(&self, endpoint: &MatchedPath) {
        // The outermost route is set first and stays.
        let _ = self.endpoint.set(endpoint.clone());
    }

    /// Matched route, or `None`.
    pub(crate) fn endpoint(&self) -> Option<&MatchedPath> {
        self.endpoint.get()
    }

    /// Records the decision on a known key.
    pub(crate) fn enter(&self, admitted: &Admitted) {
        self.connection.show_key();
        self.set(Entry::Account(Charge {
            account: admitted.account,
            key: admitted.key,
            usage: admitted.usage.clone(),
            counted: admitted.counted,
            quota_refused: admitted.verdict == Verdict::Quota,
        }));
    }

    /// Records the remaining failed credentials.
    pub(crate) fn fail(&self, left: Left) {
        self.set(Entry::Failures(left));
    }

    fn set(&self, entry: Entry) {
        // Admission happens once per request, so the slot is empty.
        let _ = self.entry.set(entry);
    }

    /// Admission decision, if the request reached it.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.entry.get()
    }

    /// Charge of the request, if an account was charged.
    pub(crate) fn charge(&self) -> Option<&Charge> {
        match self.entry()? {
            Entry::Account(charge) => Some(charge),
            Entry::Failures(_) => None,
        }
    }
}
