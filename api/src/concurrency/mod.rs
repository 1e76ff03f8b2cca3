//! Concurrency limits: low-priority threads, fair queue for expensive requests, background tasks.

pub(crate) mod background_tasks;
pub(crate) mod fair_queue;
pub(crate) mod low_priority;
