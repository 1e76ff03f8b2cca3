//! Derivation of read tables from facts, and its inputs: the market data, the security, and the fingerprints (digests) of
//! its published rows.

pub(crate) mod pipeline;
pub mod sectors;
pub mod touched;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::NaiveDate;
use market::history::{History, SourcePolicy};
use market::identity::Identity;
use market::metrics;
use market::metrics::{DerivationContext, DerivedRows, ExchangeRates, MonthlyReturns, Rules};
use market::symbol::Symbol;
use store::facts::{FactsError, load_rates};
use store::history::{FactsBySymbol, ServedYear, close_only_years, symbols_of_identities};
use store::symbol_facts::{SymbolFacts, WholeYear};
use tokio_postgres::Transaction;

use crate::derive::sectors::SectorMembers;
use crate::facts::FactCache;
use crate::generation::Generation;
use crate::write::fingerprints::PublishedFingerprints;

/// Market data and rules that the derivations of all securities share.
#[derive(Debug)]
pub(crate) struct MarketContext {
    pub as_of: NaiveDate,
    /// Monthly returns of the benchmark; `None` without a benchmark.
    pub benchmark: Option<MonthlyReturns>,
    pub rates: Arc<ExchangeRates>,
    pub reporting_currency: String,
    pub policy: SourcePolicy,
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
    /// Loads the exchange rates. The context has no benchmark yet.
    pub(crate) async fn load(
        transaction: &Transaction<'_>,
        generation: &Generation,
        as_of: NaiveDate,
        policy: SourcePolicy,
    ) -> Result<Self, FactsError> {
        let rates = Arc::new(load_rates(transaction, None, &policy).await?);
        let (rules, reporting_currency) = (generation.rules, generation.reporting_currency.clone());
        Ok(Self { as_of, benchmark: None, rates, reporting_currency, policy, rules })
    }

    /// Computes the returns of the benchmark from its history.
    pub(crate) fn with_benchmark(mut self, history: Option<&History>) -> Self {
        let Self { as_of, rates, policy, rules, .. } = &self;
        self.benchmark = history.map(|history| metrics::benchmark(history, *as_of, rates, policy, rules));
        self
    }

    /// Returns the input of the derivation functions in crate `market`, borrowed from this context.
    pub(crate) fn derivation_context(&self) -> DerivationContext<'_> {
        DerivationContext {
            as_of: self.as_of,
            newest: self.as_of,
            benchmark: self.benchmark.as_ref(),
            rates: &self.rates,
            reporting_currency: &self.reporting_currency,
            policy: &self.policy,
            rules: &self.rules,
        }
    }
}

/// Finds the years whose stored bars are all published, and published without change. Only securities with one source
/// and one symbol have such years.
pub(crate) fn published_as_stored<'a>(
    identity: &Identity,
    history: &History,
    derived: &DerivedRows,
    facts: &'a FactsBySymbol,
) -> BTreeMap<i32, WholeYear<'a>> {
    let ([tenure], [prices]) = (identity.spans.as_slice(), history.prices.as_slice()) else {
        return BTreeMap::new();
    };
    // Derived rows share the bars of a source only if the merge changes none of them.
    let facts = facts.get(tenure.symbol.as_str()).filter(|_| Arc::ptr_eq(&prices.bars, &derived.bars));
    let Some(facts) = facts else { return BTreeMap::new() };
    let owns = |date: Option<NaiveDate>| date.is_some_and(|date| identity.owns(tenure.symbol.as_str(), date));
    // The security has only one tenure. If it contains the first and the last day, it contains the whole year.
    let had_symbol_all_year =
        |year: i32| owns(NaiveDate::from_ymd_opt(year, 1, 1)) && owns(NaiveDate::from_ymd_opt(year, 12, 31));
    let of_source = facts.years().filter(|(source, _)| *source == prices.source);
    of_source
        .filter_map(|(_, years)| Some((years.range().start, years.whole_year()?)))
        .filter(|(year, _)| had_symbol_all_year(*year))
        .collect()
}

#[cfg(test)]
mod tests {
    use codec::bars::PackedBars;
    use market::bars::{Bar, BarVersion, Bars, MISSING};
    use market::day::day_number;
    use market::history::{DividendFeeds, SourcePolicy};
    use market::metrics::{DerivationContext, Rules, derive};
    use market::symbol::Symbol;
    use store::history::build_history;
    use store::symbol_facts::{PackedColumns, SymbolFacts};

    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a date")
    }

    /// One bar in each year from 2021 to 2023.
    fn bars(version: BarVersion) -> Bars {
        let mut bars = Bars { scale: 2, versions: vec![version], ..Bars::default() };
        for (year, close) in (2021..).zip([4_005, 4_100, 4_207]) {
            let day = day_number(day(&format!("{year}-03-01")));
            let [open, high, low, volume, vwap, trade_count] = [MISSING; 6];
            bars.push(Bar { day, open, high, low, close, volume, vwap, trade_count }, 0);
        }
        bars
    }

    fn stored_years(sources: &[(&str, &Bars)], from: NaiveDate, as_of: &str) -> Vec<i32> {
        let symbol: Symbol = "AAA".parse().expect("a symbol");
        let mut facts = SymbolFacts::default();
        for (source, bars) in sources {
            for (year, mut of_year) in bars.by_year() {
                of_year.canonicalize();
                let packed = PackedBars::pack(&of_year).expect("bars");
                let columns = PackedColumns::All(Box::new(packed.clone()));
                assert!(facts.put_year(source, year, packed.digest(), columns));
            }
        }
        let facts = FactsBySymbol::from([(symbol.to_string(), Arc::new(facts))]);
        let mut identity = Identity::provisional(&symbol);
        identity.spans[0].from = from;
        let history = build_history(&identity, &facts, &DividendFeeds::default(), |_, _| false);
        let (history, policy) = (history.expect("facts"), SourcePolicy::default());
        let (as_of, rules) = (day(as_of), &Rules::DEFAULT);
        let context = DerivationContext {
            as_of,
            newest: as_of,
            benchmark: None,
            rates: &ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules,
        };
        let derived = derive(&history, &context);
        let found = published_as_stored(&identity, &history, &derived, &facts);
        for (year, range) in derived.bars.years() {
            let mut published = derived.bars.slice_values(range);
            published.canonicalize();
            let digest = PackedBars::pack(&published).expect("bars").digest();
            assert!(found.get(&year).is_none_or(|stored| stored.digest == digest), "{year}");
        }
        found.into_keys().collect()
    }

    #[test]
    fn only_unchanged_whole_years_of_one_source_are_published_as_stored() {
        let (plain, always) = (bars(BarVersion::UNKNOWN), NaiveDate::MIN);
        assert_eq!(stored_years(&[("a", &plain)], always, "2023-12-29"), [2021, 2022, 2023]);
        // The security did not have the symbol all year.
        assert_eq!(stored_years(&[("a", &plain)], day("2022-02-01"), "2023-12-29"), [2023]);
        assert_eq!(stored_years(&[("a", &plain)], day("2022-04-01"), "2023-12-29"), [2023]);
        // Bars after the as-of date are not published.
        assert!(stored_years(&[("a", &plain)], always, "2022-12-30").is_empty());
        assert!(stored_years(&[("a", &plain), ("b", &plain)], always, "2023-12-29").is_empty());
        let retracted = bars(BarVersion { retracted: true, ..BarVersion::UNKNOWN });
        assert!(stored_years(&[("a", &retracted)], always, "2023-12-29").is_empty());
        let adjusted = bars(BarVersion { basis_day: Some(0), ..BarVersion::UNKNOWN });
        assert!(stored_years(&[("a", &adjusted)], always, "2023-12-29").is_empty());
    }
}
