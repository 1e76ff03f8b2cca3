//! Concurrency: limiter of expensive work, low-priority threads, background tasks.

pub(crate) mod limiter;
pub(crate) mod tasks;
