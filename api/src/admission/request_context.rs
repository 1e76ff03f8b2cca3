//! One request as the limits see it: who sent it, what it asked for, and what was decided on it. It goes with the request to
//! the handler's signature, and back to where the headers are written.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::http::Extensions;

use crate::admission::bucket::Usage;
use crate::admission::decision::{Admitted, Verdict};
use crate::auth::throttle::Left;
use crate::connection::Connection;

/// Who sent a request, and what came of it.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The address that the limits count.
    pub(crate) client: IpAddr,
    /// True if the request came through a trusted proxy, whose word on it is taken.
    pub(crate) is_proxied: bool,
    connection: Arc<Connection>,
    endpoint: OnceLock<MatchedPath>,
    entry: OnceLock<Entry>,
}

/// What governs the request; without an entry it is the address's calls.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// Too many failed credentials would be refused.
    Failures(Left),
    Account(Charge),
}

/// What was charged to whom.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) account: i64,
    pub(crate) key: i64,
    pub(crate) usage: Usage,
    /// True if the call was counted against the quota.
    pub(crate) counted: bool,
    pub(crate) quota_refused: bool,
}

impl Caller {
    /// The sender of a request that nothing is decided on yet.
    pub(crate) fn new(client: IpAddr, is_proxied: bool, connection: Arc<Connection>) -> Arc<Self> {
        let (endpoint, entry) = Default::default();
        Arc::new(Self { client, is_proxied, connection, endpoint, entry })
    }

    /// The sender that a request's extensions name; none of a request that did not come over a connection.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Arc<Self>> {
        extensions.get::<Arc<Self>>()
    }

    /// Notes the route that answers.
    pub(crate) fn reach(&self, endpoint: &MatchedPath) {
        // The outermost of a request's routes comes first, and stays.
        let _ = self.endpoint.set(endpoint.clone());
    }

    /// The route that answers; none where nothing is.
    pub(crate) fn endpoint(&self) -> Option<&MatchedPath> {
        self.endpoint.get()
    }

    /// Notes the decision on a known key.
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

    /// Notes what is left for failed credentials.
    pub(crate) fn fail(&self, left: Left) {
        self.set(Entry::Failures(left));
    }

    fn set(&self, entry: Entry) {
        // Admission happens once per request, so the slot is empty.
        let _ = self.entry.set(entry);
    }

    /// The decision, if the request got so far.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.entry.get()
    }

    /// What was charged, if anybody was.
    pub(crate) fn charge(&self) -> Option<&Charge> {
        match self.entry()? {
            Entry::Account(charge) => Some(charge),
            Entry::Failures(_) => None,
        }
    }
}
