//! Request parameters: parsed once into types, with all errors collected.
//!
//! Invariants: parsing does no I/O. Unknown, repeated and conflicting parameters are errors. A route accepts exactly
//! the parameters that its `read` requests, so `allowed` in a 400 is complete.

mod accepted;
mod contract;
pub(crate) mod cursor;
mod describe;
pub(crate) mod facets;
mod fields;
mod format;
mod mistake;
mod names;
mod number;
mod page;
mod reader;
mod select;
pub(crate) mod served_rules;
mod since;
mod symbols;
pub(crate) mod trigram;
mod window;

pub(crate) use contract::{Parameters, Unrouted};
pub(crate) use describe::Described;
pub(crate) use fields::Output;
pub(crate) use format::Format;
pub(crate) use mistake::{Mistakes, ParameterError};
pub(crate) use names::among;
pub(crate) use number::Bounds;
pub(crate) use page::{Direction, Page, Paging};
pub(crate) use reader::Reader;
pub(crate) use select::{Listed, SortValue};
pub(crate) use since::Since;
pub(crate) use symbols::{PathSymbol, SymbolList};
pub(crate) use window::{OTHER_DAYS, OtherDays, Window};
