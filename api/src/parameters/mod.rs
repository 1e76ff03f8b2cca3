//! Parameters: read once at the edge into types, every mistake collected.
//!
//! Invariants: reading does no I/O; unknown, repeated and conflicting parameters are mistakes; what a route accepts
//! is exactly what its `read` asks for, so `allowed` in a 400 is the truth.

mod describe;
mod fields;
mod number;
mod page;
mod reader;
mod select;
mod symbols;
mod window;

pub(crate) use describe::Described;
use fields::OutputParameters;
pub(crate) use fields::{Format, Output};
pub(crate) use number::Bounds;
use page::PagingParameters;
pub(crate) use page::{Direction, Page, Paging};
pub(crate) use reader::Reader;
pub(crate) use select::{Listed, SortValue};
use symbols::SymbolPath;
pub(crate) use symbols::{PathSymbol, SymbolList};
pub(crate) use window::{Window, years_before};

use chrono::NaiveDate;

/// The parameters of one endpoint.
pub(crate) trait Parameters: Sized + Send + Sync + 'static {
    /// Name of the gated feature, for a 403; unused where every tier may ask.
    const FEATURE: &'static str = "";
    /// Whether the answer differs by tier.
    const TIER_MATTERS: bool = false;
    /// Whether there is an endpoint at all: what has none counts against no quota, and its parameters are nobody's.
    const ROUTED: bool = true;

    /// Reads everything the endpoint accepts; mistakes are left in the reader.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// The oldest day asked for explicitly, which the tier's depth must reach.
    fn oldest(&self) -> Option<NaiveDate> {
        None
    }
}

/// For requests that no endpoint answers.
#[derive(Debug)]
pub(crate) struct Unrouted;

impl Parameters for Unrouted {
    const ROUTED: bool = false;

    fn read(_: &mut Reader<'_>) -> Self {
        Self
    }
}
