//! The projector daemon: lease, consumer loop and transaction writer.

pub mod lease;
pub mod run;
pub(crate) mod writer;
