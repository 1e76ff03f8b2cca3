//! Inputs of a derivation: the market data, the security, and the fingerprints (digests) of its published rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::NaiveDate;
use market::history::{DividendFeeds, SourcePolicy};
use market::identity::Identity;
use market::metrics::{DerivationContext, MonthlyReturns, Rules};
use market::symbol::Symbol;
use store::facts::FactsError;
use store::history::{FactsBySymbol, ServedYear, close_only_years, symbols_of_identities};
use store::symbol_facts::SymbolFacts;

use crate::derive::sectors::SectorMembers;
use crate::facts::fact_cache::FactCache;
use crate::write::fingerprints::PublishedFingerprints;

/// Market data and rules that the derivations of all securities share.
#[derive(Debug)]
pub(crate) struct MarketContext {
    pub as_of: NaiveDate,
    pub benchmark: Option<MonthlyReturns>,
    pub policy: SourcePolicy,
    pub dividend_feeds: DividendFeeds,
    pub rules: Rules,
}

/// Cached state of one generation, for example the fingerprints (digests) of its published rows.
#[derive(Debug, Default)]
pub(crate) struct GenerationCache {
    /// `true` if the generation had no rows when this cache was created. A security that is missing in `served` then
    /// has no published rows.
    pub is_new: bool,
    pub served: HashMap<Symbol, PublishedFingerprints>,
    pub sectors: SectorMembers,
    /// Securities for which all columns of the bars must be loaded, for example because the bars of several sources are
    /// used in one year.
    pub full_bars: HashSet<Symbol>,
}

/// Security to derive, with the fingerprints (digests) of its published rows.
pub(crate) struct DerivationTarget {
    pub identity: Identity,
    pub served: PublishedFingerprints,
    /// Calendar years of which a derivation usually needs only close prices, if the bars are unchanged.
    pub closes: Range<i32>,
}

impl DerivationTarget {
    /// `true` if the close prices of a year suffice. `digest` is the digest of the year's stored bars.
    pub(crate) fn closes_suffice_for(&self, year: i32, digest: i64) -> bool {
        self.closes.contains(&year) && self.served.years.get(&year) == Some(&digest)
    }

    /// Reduces the facts of the security's own symbol to the columns that later derivations need.
    pub(crate) fn shrink_facts(
        &self,
        facts: &mut Arc<SymbolFacts>,
        years: &BTreeMap<i32, i64>,
    ) -> Result<(), FactsError> {
        let suffice =
            |year: i32, digest: i64| self.closes.contains(&year) && years.get(&year) == Some(&digest);
        if !facts.can_shrink(suffice) {
            return Ok(());
        }
        Arc::make_mut(facts)
            .shrink(suffice)
            .map_err(|source| FactsError::Bars { symbol: self.identity.symbol.to_string(), source })
    }

    /// Moves the facts of the security's symbols to the cache.
    pub(crate) fn cache_facts(&self, facts: &mut FactsBySymbol, cache: &mut FactCache) {
        for symbol in symbols_of_identities([&self.identity]) {
            let Some(of_symbol) = facts.remove(symbol) else { continue };
            if !cache.get(symbol).is_some_and(|held| Arc::ptr_eq(held, &of_symbol)) {
                cache.insert(symbol, of_symbol);
            }
        }
    }

    /// Published price years in [`DerivationTarget::closes`]: symbol, year and digest of the bars.
    pub(crate) fn published_close_years(&self) -> impl Iterator<Item = ServedYear<'_>> {
        let symbol = self.identity.symbol.as_str();
        self.served.years.range(self.closes.clone()).map(move |(year, digest)| (symbol, *year, *digest))
    }
}

impl GenerationCache {
    /// Calendar years for which a derivation of the security may need only close prices.
    pub(crate) fn close_only_years(&self, identity: &Identity, market: &MarketContext) -> Range<i32> {
        if self.full_bars.contains(&identity.symbol) {
            return 0..0;
        }
        close_only_years(identity, market.as_of)
    }
}

impl MarketContext {
    /// Returns the input of the derivation functions in crate `market`, borrowed from this context.
    pub(crate) fn derivation_context(&self) -> DerivationContext<'_> {
        DerivationContext {
            as_of: self.as_of,
            newest: self.as_of,
            benchmark: self.benchmark.as_ref(),
            policy: &self.policy,
            rules: &self.rules,
        }
    }
}
