//! Generations: rebuild, promotion, rollback and removal.

pub mod promote;
pub mod rebuild;
pub mod rebuild_args;
