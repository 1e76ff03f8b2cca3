//! Domain of the market data service: events, security identity, metric rules and rows of the read tables.
//!
//! Invariants: this crate and its dependencies do no I/O. [`metrics`] is pure: no clock, files or sockets. Every
//! decimal is exact.

/// A decimal literal in tests.
#[cfg(test)]
macro_rules! dec {
    ($literal:expr) => {
        stringify!($literal).replace(' ', "").parse::<rust_decimal::Decimal>().unwrap()
    };
}

pub mod bars;
pub mod column;
pub mod dated_text;
pub mod day;
pub mod decimal;
pub mod event;
pub mod expectation;
pub mod history;
pub mod identity;
pub mod metrics;
pub mod notices;
pub mod observation;
pub mod price;
pub mod reference;
pub mod row;
pub mod sibling_payments;
pub mod symbol;
mod text_enum;
