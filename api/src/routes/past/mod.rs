//! Earlier data versions: version selection in `context.rs`, derived rows in `security.rs`, revisions in
//! `revisions.rs`.

mod context;
pub(crate) mod revisions;
pub(crate) mod security;
