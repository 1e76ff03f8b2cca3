//! Domain of the market data service: events, security identity, metric rules and rows of the read tables.
//!
//! Invariants: this crate and its dependencies do no I/O. [`metrics`] is pure: no clock, files or sockets. Every
//! decimal is exact.

pub mod bars;
pub mod column;
pub mod dated_text;
pub mod day;
pub mod decimal;
pub mod event;
pub mod history;
pub mod identity;
pub mod metrics;
pub mod observation;
pub mod price;
pub mod reference;
pub mod row;
pub mod sibling_payments;
pub mod symbol;
mod text_enum;
