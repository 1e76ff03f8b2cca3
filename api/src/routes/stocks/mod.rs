//! Stocks and ETFs: the list, and all resources of one security.

pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod metrics;
pub(crate) mod records;
pub(crate) mod revisions;
pub(crate) mod snapshot;
