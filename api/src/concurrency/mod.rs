//! Concurrency limits: low-priority CPU pool, fair queue for expensive requests, background tasks.

pub(crate) mod background_tasks;
pub(crate) mod cpu_pool;
pub(crate) mod fair_queue;
