//! Module index: encoding in `encoded_security.rs`, change detection in `fingerprints.rs`, writes in
//! `read_tables.rs`, the change journal in `journal.rs`.

pub(crate) mod encoded_security;
pub mod fingerprints;
pub mod journal;
pub(crate) mod prepared_statements;
pub mod read_tables;
pub(crate) mod renamed_symbols;
pub(crate) mod table;
