//! The projector daemon: lease, consumer loop and transaction writer.

pub(crate) mod batch_writer;
pub mod lease;
pub mod run;
