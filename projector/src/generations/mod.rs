//! Lifecycle of generations: rebuild, promote, roll back, drop.

pub(crate) mod copied_tables;
pub(crate) mod disk_space;
pub mod promote;
pub mod rebuild;
