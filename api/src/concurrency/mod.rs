//! Concurrency: limiter of expensive work, low-priority threads, background tasks.

pub(crate) mod background_tasks;
pub(crate) mod batch;
pub(crate) mod limiter;
pub(crate) mod low_priority;
