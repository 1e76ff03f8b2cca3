//! State of the service: health and probes, and the status with the history of the traffic.

pub(crate) mod health;
pub(crate) mod status;
