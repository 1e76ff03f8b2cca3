//! Daemon of the projector. It runs in sessions. A session is one database connection under one writer lease. After a
//! transient error, the daemon starts a new session.

pub(crate) mod batch_writer;
pub mod lease;
mod log_identity;
mod monthly_quality;
pub mod run;
