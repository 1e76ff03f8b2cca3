//! Concurrency: limiter of expensive work, low-priority threads, background tasks, refreshed values.

pub(crate) mod limiter;
pub(crate) mod refreshed;
pub(crate) mod tasks;
