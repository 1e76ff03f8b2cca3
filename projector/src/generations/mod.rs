//! Lifecycle of generations: rebuild, promote, roll back, drop.

pub(crate) mod disk_space;
pub mod promote;
pub mod rebuild;
