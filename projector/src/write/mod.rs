//! Writing read tables: encoded rows, fingerprints of published rows, and the journal of changes.

pub(crate) mod encoded_security;
pub mod fingerprints;
pub mod journal;
pub(crate) mod prepared_statements;
pub mod read_tables;
pub(crate) mod table;
