//! Context of a tool call, shared with the HTTP request that contains the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::connection::request_id::RequestId;

/// Context of one HTTP request, shared with the tasks of the MCP library.
#[derive(Debug, Clone)]
pub(super) struct CallContext {
    /// Request id of the HTTP request.
    pub(super) id: RequestId,
    is_refused: Arc<AtomicBool>,
}

impl CallContext {
    pub(super) fn new(id: RequestId) -> Self {
        Self { id, is_refused: Arc::default() }
    }

    pub(super) fn record_refused_key(&self) {
        self.is_refused.store(true, Ordering::Release);
    }

    pub(super) fn has_refused_key(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }
}
