//! Reading cases, running measures, comparing.

pub(crate) mod compare;
pub(crate) mod inputs;
pub(crate) mod outputs;
pub(crate) mod tables;
