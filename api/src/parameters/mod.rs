//! Request parameters: parsed once into types, with all errors collected.
//!
//! Invariants: parsing does no I/O. Unknown, repeated and conflicting parameters are errors.

pub(crate) mod cursor;
mod deprecation;
pub(crate) mod facets;
pub(crate) mod filters;
mod output;
mod page;
mod parameter_set;
mod reader;
mod request_properties;
pub(crate) mod served_rules;
mod symbols;
mod sync_point;

pub(crate) use deprecation::{DEPRECATIONS, Deprecation};
pub(crate) use filters::{Bounds, DateRange, OTHER_DATE_PARAMETERS, OtherDateRanges, is_among};
pub(crate) use output::Output;
pub(crate) use page::{Direction, Page, PageOptions, SortValue, Sortable};
pub(crate) use parameter_set::{DocumentedParameters, Parameters, UnroutedParameters, parameters};
pub(crate) use reader::{ParameterError, ParameterErrors, ParameterReader, parse_date};
pub(crate) use request_properties::{MIN_VERSION_HEADER, MinVersion, RequestProperties, ResponseFormat};
pub(crate) use symbols::{Holding, HoldingList, RequestedSymbol, SymbolList, parse_holdings, to_columns};
pub(crate) use sync_point::{ChangeKind, JournalPlace, Knowledge, RowKey, SyncPoint};
