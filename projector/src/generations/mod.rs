//! Generations: rebuild, promotion, rollback and removal.

pub(crate) mod disk_space;
pub mod promote;
pub mod rebuild;
pub mod rebuild_args;
