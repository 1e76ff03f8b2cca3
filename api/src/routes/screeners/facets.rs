//! Facets of a screener: the number of matching securities by value of a filter, for example by sector.

use std::collections::BTreeMap;

use market::text_enum;

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
    pub(super) fn values(self, member: &SecurityRow) -> Vec<&str> {
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
