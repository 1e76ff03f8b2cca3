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

use crate::derive::sectors::SectorMembers;
use crate::facts::fact_cache::FactCache;
use crate::write::fingerprints::PublishedFingerprints;

/// What every security is derived with.
#[derive(Debug)]
pub(crate) struct MarketContext {
    pub as_of: NaiveDate,
    pub benchmark: Option<MonthEnds>,
    pub policy: SourcePolicy,
    pub rules: Rules,
}

/// What is known of a generation's rows.
#[derive(Debug, Default)]
pub(crate) struct GenerationCache {
    /// Whether the generation had no row yet when this was begun: of what is not known here there is none.
    pub is_new: bool,
    pub served: HashMap<Symbol, PublishedFingerprints>,
    pub sectors: SectorMembers,
    /// Securities whose closes alone did not suffice: of several sources, say, or with a bar in the wrong unit.
    pub full_bars: HashSet<Symbol>,
}

/// A security with what deriving it again depends on.
pub(crate) struct DerivationInput {
    pub identity: Identity,
    pub served: PublishedFingerprints,
    /// Years whose closes suffice, as long as they are served unchanged.
    pub closes: Range<i32>,
}

impl DerivationInput {
    /// Whether a year of its symbol's bars is served as it is and its closes suffice.
    pub(crate) fn closes_suffice_for(&self, year: i32, digest: i64) -> bool {
        self.closes.contains(&year) && self.served.years.get(&year) == Some(&digest)
    }

    /// Keeps the facts of its symbols in memory, of years whose closes suffice no more than these.
    pub(crate) fn cache_facts(
        &self,
        facts: &mut FactsBySymbol,
        cache: &mut FactCache,
    ) -> Result<(), FactsError> {
        for symbol in symbols_of([&self.identity]) {
            let Some(mut of_symbol) = facts.remove(symbol) else { continue };
            let own = symbol == self.identity.symbol.as_str();
            if own && of_symbol.can_shrink(|year, digest| self.closes_suffice_for(year, digest)) {
                let shrunk = Arc::make_mut(&mut of_symbol)
                    .shrink(|year, digest| self.closes_suffice_for(year, digest));
                shrunk.map_err(|source| FactsError::Bars { symbol: symbol.to_owned(), source })?;
            }
            if !cache.get(symbol).is_some_and(|held| Arc::ptr_eq(held, &of_symbol)) {
                cache.insert(symbol, of_symbol);
            }
        }
        Ok(())
    }

    /// The served years among those, with their digests.
    pub(crate) fn published_close_years(&self) -> impl Iterator<Item = ServedYear<'_>> {
        let symbol = self.identity.symbol.as_str();
        self.served.years.range(self.closes.clone()).map(move |(year, digest)| (symbol, *year, *digest))
    }
}

impl GenerationCache {
    /// Years whose closes may suffice: the security held its own symbol on all their days.
    pub(crate) fn close_only_years(&self, identity: &Identity, market: &MarketContext) -> Range<i32> {
        let no_years = 0..0;
        if self.full_bars.contains(&identity.symbol) {
            return no_years;
        }
        let mut spans = identity.spans.iter().filter(|span| span.symbol == identity.symbol);
        let (Some(span), None) = (spans.next(), spans.next()) else { return no_years };
        // What is measured by more than closes lies in the last two calendar years.
        let end = (market.as_of.year() - 1).min(span.to.year());
        let first = span.from.year() + 1;
        if first < end { first..end } else { no_years }
    }
}

impl MarketContext {
    /// The same for one derivation.
    pub(crate) fn as_market(&self) -> Market<'_> {
        Market {
            as_of: self.as_of,
            newest: self.as_of,
            benchmark: self.benchmark.as_ref(),
            policy: &self.policy,
            rules: &self.rules,
        }
    }
}
