//! Carries a request's admission from the handler's signature out to the layer that writes the headers.

use std::sync::{Arc, OnceLock};

use super::admission::Usage;
use super::{Admitted, Verdict};

/// One request's entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<OnceLock<Entry>>);

/// What was charged to whom.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) account: i64,
    pub(crate) usage: Usage,
    /// Whether the call was counted against the quota.
    pub(crate) counted: bool,
    pub(crate) quota_refused: bool,
}

impl Ledger {
    /// Notes the decision.
    pub(super) fn enter(&self, admitted: &Admitted) {
        let entry = Entry {
            account: admitted.account,
            usage: admitted.usage.clone(),
            counted: admitted.counted,
            quota_refused: admitted.verdict == Verdict::Quota,
        };
        // Admission happens once per request, so the slot is empty.
        let _ = self.0.set(entry);
    }

    /// The decision, if the request got so far.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.0.get()
    }
}
