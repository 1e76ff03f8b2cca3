//! Request parameters: parsed once into types, with all errors collected.
//!
//! Invariants: parsing does no I/O. Unknown, repeated and conflicting parameters are errors. A route accepts exactly
//! the parameters that its `read` requests, so `allowed` in a 400 is complete.

mod spec;
mod parameter_set;
pub(crate) mod cursor;
mod openapi_parameters;
pub(crate) mod facets;
mod output;
mod response_format;
mod validation_error;
mod facet_filter;
mod number;
mod page;
mod reader;
mod keyset;
pub(crate) mod served_rules;
mod sync_point;
mod symbols;
pub(crate) mod trigram;
mod date_range;

pub(crate) use parameter_set::{Parameters, UnroutedParameters};
pub(crate) use openapi_parameters::DocumentedParameters;
pub(crate) use output::Output;
pub(crate) use response_format::ResponseFormat;
pub(crate) use validation_error::{ParameterErrors, ParameterError};
pub(crate) use facet_filter::is_among;
pub(crate) use number::Bounds;
pub(crate) use page::{Direction, Page, PageOptions};
pub(crate) use reader::ParameterReader;
pub(crate) use keyset::{Sortable, SortValue};
pub(crate) use sync_point::SyncPoint;
pub(crate) use symbols::{PathSymbol, SymbolList};
pub(crate) use date_range::{OTHER_DATE_PARAMETERS, OtherDateRanges, DateRange};
