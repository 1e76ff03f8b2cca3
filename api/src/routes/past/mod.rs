//! Responses from earlier data versions: rows and revisions, derived again from facts.

mod context;
pub(crate) mod revisions;
pub(crate) mod security;
