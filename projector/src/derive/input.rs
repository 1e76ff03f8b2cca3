//! A security that is about to be derived: what is served of it already, and which facts it takes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use market::history::SourcePolicy;
use market::identity::Identity;
use market::measure::{Market, MonthEnds, Rules};
use market::symbol::Symbol;
use store::facts::FactsError;
use store::history::{FactsBySymbol, ServedYear, symbols_of};

use crate::derive::sectors::Sectors;
use crate::facts::fact_cache::Resident;
use crate::write::fingerprints::Served;

/// What every security is derived with.
#[derive(Debug)]
pub(crate) struct MarketNow {
    pub as_of: NaiveDate,
    pub benchmark: Option<MonthEnds>,
    pub policy: SourcePolicy,
    pub rules: Rules,
}

/// What is known of a generation's rows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Whether the generation had no row yet when this was begun: of what is not known here there is none.
    pub is_new: bool,
    pub served: HashMap<Symbol, Served>,
    pub sectors: Sectors,
    /// Securities whose closes alone did not suffice: of several sources, say, or with a bar in the wrong unit.
    pub whole: HashSet<Symbol>,
}

/// A security with what deriving it again depends on.
pub(crate) struct Subject {
    pub identity: Identity,
    pub served: Served,
    /// Years whose closes suffice, as long as they are served unchanged.
    pub closes: Range<i32>,
}

impl Subject {
    /// Whether a year of its symbol's bars is served as it is and its closes suffice.
    pub(crate) fn suffices(&self, year: i32, digest: i64) -> bool {
        self.closes.contains(&year) && self.served.years.get(&year) == Some(&digest)
    }

    /// Keeps the facts of its symbols in memory, of years whose closes suffice no more than these.
    pub(crate) fn keep_facts(
        &self,
        facts: &mut FactsBySymbol,
        resident: &mut Resident,
    ) -> Result<(), FactsError> {
        for symbol in symbols_of([&self.identity]) {
            let Some(mut of_symbol) = facts.remove(symbol) else { continue };
            let own = symbol == self.identity.symbol.as_str();
            if own && of_symbol.can_shrink(|year, digest| self.suffices(year, digest)) {
                let shrunk = Arc::make_mut(&mut of_symbol).shrink(|year, digest| self.suffices(year, digest));
                shrunk.map_err(|source| FactsError::Bars { symbol: symbol.to_owned(), source })?;
            }
            if !resident.get(symbol).is_some_and(|held| Arc::ptr_eq(held, &of_symbol)) {
                resident.admit(symbol, of_symbol);
            }
        }
        Ok(())
    }

    /// The served years among those, with their digests.
    pub(crate) fn closes_served(&self) -> impl Iterator<Item = ServedYear<'_>> {
        let symbol = self.identity.symbol.as_str();
        self.served.years.range(self.closes.clone()).map(move |(year, digest)| (symbol, *year, *digest))
    }
}

impl Known {
    /// Years whose closes may suffice: the security held its own symbol on all their days.
    pub(crate) fn closes(&self, identity: &Identity, market: &MarketNow) -> Range<i32> {
        let none = 0..0;
        if self.whole.contains(&identity.symbol) {
            return none;
        }
        let mut spans = identity.spans.iter().filter(|span| span.symbol == identity.symbol);
        let (Some(span), None) = (spans.next(), spans.next()) else { return none };
        // What is measured by more than closes lies in the last two calendar years.
        let end = (market.as_of.year() - 1).min(span.to.year());
        let first = span.from.year() + 1;
        if first < end { first..end } else { none }
    }
}

impl MarketNow {
    /// The same for one derivation.
    pub(crate) fn borrowed(&self) -> Market<'_> {
        Market {
            as_of: self.as_of,
            newest: self.as_of,
            benchmark: self.benchmark.as_ref(),
            policy: &self.policy,
            rules: &self.rules,
        }
    }
}
