//! The domain: what a market's events are, what each number means, and what is served.
//!
//! Invariants: no crate that does I/O is among the dependencies, so `measure` is pure (no clock, no files, no sockets);
//! every decimal is exact.

pub mod bars;
mod digits;
pub mod event;
pub mod history;
pub mod identity;
pub mod measure;
mod numeric;
mod observation;
pub mod price;
pub mod record;
pub mod records;
pub mod reference;
pub mod row;
pub mod same_day;
pub mod symbol;
mod text_enum;
pub mod value;
pub mod version;
