//! Writes of derived rows to the read tables and the journal.

pub(crate) mod changed_records;
pub(crate) mod encoded_security;
pub mod fingerprints;
pub mod journal;
pub(crate) mod notices;
pub mod read_tables;
pub(crate) mod table;
