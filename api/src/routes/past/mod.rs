//! Responses at earlier data versions. Rows and revisions are derived again from the stored feed records (facts).

mod context;
pub(crate) mod revisions;
pub(crate) mod security;
