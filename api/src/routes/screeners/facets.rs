//! Facets of a screener: the number of matching securities by value of a filter, for example by sector.

use std::collections::BTreeMap;

use market::text_enum;

use super::filters::{Preset, ScreenFilters};
use crate::read::memory_tables::SecurityRow;

text_enum! {
    /// Filter whose values a screener counts.
    pub enum Facet {
        Sector = "sector", Country = "country", Type = "type", Index = "index", Exchange = "exchange",
    }
}

/// Number of securities by value, for each facet.
pub(super) type FacetCounts = BTreeMap<&'static str, BTreeMap<String, u32>>;

impl Facet {
    /// Values of a security.
    fn values(self, member: &SecurityRow) -> Vec<&str> {
        let stock = &member.stock;
        match self {
            Self::Sector => stock.sector.as_deref().into_iter().collect(),
            Self::Country => stock.country.as_deref().into_iter().collect(),
            Self::Type => vec![stock.r#type.as_str()],
            Self::Index => member.figures.indexes.0.iter().map(String::as_str).collect(),
            Self::Exchange => stock.exchange.as_deref().into_iter().collect(),
        }
    }
}

/// Counts the securities by value of each facet. A security counts if it matches all filters except the facet's own.
pub(super) fn count_facets<P: Preset>(
    screen: &ScreenFilters<P>,
    rows: &[SecurityRow],
    facets: &[Facet],
) -> FacetCounts {
    let mut counts = FacetCounts::new();
    for facet in facets {
        let by_value = counts.entry(facet.as_str()).or_default();
        for member in rows.iter().filter(|member| screen.matches_except(member, Some(*facet))) {
            for value in facet.values(member) {
                *by_value.entry(value.to_owned()).or_default() += 1;
            }
        }
    }
    counts
}
