//! Context of a tool call, shared with the HTTP request that it makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::connection::request_id::RequestId;

/// One request on its way through the protocol's own tasks.
#[derive(Debug, Clone)]
pub(super) struct Passage {
    /// Id of the request, for the tasks that work on it.
    pub(super) id: RequestId,
    is_refused: Arc<AtomicBool>,
}

impl Passage {
    pub(super) fn new(id: RequestId) -> Self {
        Self { id, is_refused: Arc::default() }
    }

    /// Notes that the API refused the key.
    pub(super) fn refuse_key(&self) {
        self.is_refused.store(true, Ordering::Release);
    }

    /// True if the API refused the key.
    pub(super) fn has_refused_key(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }
}
