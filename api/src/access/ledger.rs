//! Carries what governs a request from the handler's signature out to the layer that writes the headers.

use std::sync::{Arc, OnceLock};

use super::bucket::Usage;
use super::decision::{Admitted, Verdict};
use super::throttle::Left;

/// One request's entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<OnceLock<Entry>>);

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
    /// Whether the call was counted against the quota.
    pub(crate) counted: bool,
    pub(crate) quota_refused: bool,
}

impl Ledger {
    /// Notes the decision on a known key.
    pub(super) fn enter(&self, admitted: &Admitted) {
        self.set(Entry::Account(Charge {
            account: admitted.account,
            key: admitted.key,
            usage: admitted.usage.clone(),
            counted: admitted.counted,
            quota_refused: admitted.verdict == Verdict::Quota,
        }));
    }

    /// Notes what is left for failed credentials.
    pub(super) fn fail(&self, left: Left) {
        self.set(Entry::Failures(left));
    }

    fn set(&self, entry: Entry) {
        // Admission happens once per request, so the slot is empty.
        let _ = self.0.set(entry);
    }

    /// The decision, if the request got so far.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.0.get()
    }
}
