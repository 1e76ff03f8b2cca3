//! Command line of the projector.

pub(crate) mod command;
pub mod run;
mod status;
