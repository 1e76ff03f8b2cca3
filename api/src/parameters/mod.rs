//! Request parameters: parsed once into types, with all errors collected.
//!
//! Invariants: parsing does no I/O. Unknown, repeated and conflicting parameters are errors.

pub(crate) mod cursor;
mod date_range;
mod facet_filter;
pub(crate) mod facets;
mod holdings;
mod keyset;
mod min_version;
mod number;
mod openapi_parameters;
mod output;
mod page;
mod parameter_set;
mod reader;
mod request_properties;
pub(crate) mod served_rules;
mod spec;
mod symbols;
mod sync_point;

pub(crate) use date_range::{OTHER_DATE_PARAMETERS, OtherDateRanges};
pub(crate) use facet_filter::is_among;
pub(crate) use holdings::{Holding, HoldingList, parse_holdings};
pub(crate) use keyset::{SortValue, Sortable};
pub(crate) use min_version::{MIN_VERSION_HEADER, MinVersion};
pub(crate) use number::Bounds;
pub(crate) use openapi_parameters::DocumentedParameters;
pub(crate) use output::Output;
pub(crate) use page::{Direction, Page, PageOptions};
pub(crate) use parameter_set::{Parameters, UnroutedParameters, parameters};
pub(crate) use reader::{ParameterError, ParameterErrors, ParameterReader};
pub(crate) use request_properties::{RequestProperties, ResponseFormat};
pub(crate) use symbols::{PathSymbol, SymbolList};
pub(crate) use sync_point::{ChangeKind, JournalPlace, Knowledge, RowKey, SyncPoint};
