//! Module index: the choice of a version in `context.rs`, derived rows of an earlier version in `security.rs`, revisions in
//! `revisions.rs`.

mod context;
pub(crate) mod revisions;
pub(crate) mod security;
