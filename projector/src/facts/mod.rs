//! Fact tables: they are updated with the record batches of the log. Also contains the rows that a batch wrote, and the
//! in-memory cache of packed facts, which is limited by a memory budget.
//!
//! Cached facts always equal the tables. Only the projector with the lease writes facts, and without the lease it drops
//! its cache.
//!
//! Facts are never evicted. All symbols are read daily in the same order, so an eviction would remove the next facts.

pub(crate) mod dividend_feeds;
pub mod prices;
pub mod records;
mod stored_years;

use std::collections::HashMap;
use std::sync::Arc;

use codec::bars::PackedBars;
use market::bars::SupersededBars;
use store::past_facts::{BarsKey, RecordsKey};
use store::symbol_facts::{PackedColumns, SymbolFacts};

/// While the process uses at most this many bytes, the cache may grow up to its budget. The process needs about this
/// much memory even without a cache, for connections, fingerprints and chunks.
const MIN_PROCESS_BYTES: usize = 128 << 20;

/// Cache of facts by symbol. A cached symbol has all its facts, but some years have only close prices.
#[derive(Debug, Default)]
pub struct FactCache {
    symbols: HashMap<String, Arc<SymbolFacts>>,
    bytes: usize,
    budget: usize,
    /// Current limit of the estimated size, in bytes. It is the budget, or less while the process uses too much memory.
    limit: usize,
}

impl FactCache {
    /// Creates a cache with a budget of `budget` bytes.
    pub fn with_budget(budget: usize) -> Self {
        Self { budget, limit: budget, ..Self::default() }
    }

    /// Creates a cache with a budget of 0 bytes. It stores nothing.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// Cached facts of a symbol; `None` if the symbol is not cached.
    pub fn get(&self, symbol: &str) -> Option<&Arc<SymbolFacts>> {
        self.symbols.get(symbol)
    }

    /// `true` if the cache stores nothing.
    pub fn is_disabled(&self) -> bool {
        self.budget == 0
    }

    /// Estimated size of the cached facts, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stops the growth of the cache while the process nears the budget. `resident_bytes` is the memory of the process;
    /// `None` if unknown.
    pub fn limit_by_resident_bytes(&mut self, resident_bytes: Option<usize>) {
        // The rest of the budget is left for derivations and merges.
        let is_over = resident_bytes
            .is_some_and(|bytes| bytes > (self.budget - self.budget / 8).max(MIN_PROCESS_BYTES));
        self.limit = if is_over { self.limit.min(self.bytes) } else { self.budget };
    }

    /// Replaces the cached facts of a symbol. If the cache would then exceed its limit, removes the symbol from the
    /// cache instead.
    pub fn insert(&mut self, symbol: &str, facts: Arc<SymbolFacts>) {
        self.remove(symbol);
        let bytes = symbol.len() + facts.size_bytes();
        if self.bytes + bytes <= self.limit {
            self.bytes += bytes;
            self.symbols.insert(symbol.to_owned(), facts);
        }
    }

    /// Updates cached symbols with rows that were written to table `records`.
    pub fn update_records(&mut self, written: &[AppliedRecords]) {
        for row in written {
            if SymbolFacts::has_kind(row.key.kind) {
                self.update_symbol(&row.key.symbol, |facts| {
                    facts.put_records(row.key.kind, &row.key.source, &row.packed);
                    true
                });
            }
        }
    }

    /// Updates cached symbols with rows that were written to table `bars`, or removed from it. Each row has one year. If the cache has
    /// packed this year together with other years, the symbol is removed from the cache.
    pub fn update_years(&mut self, written: Vec<AppliedBars>) {
        for row in written {
            let (symbol, source, year) = row.key;
            self.update_symbol(&symbol, |facts| match row.packed.days.is_empty() {
                true => facts.remove_year(&source, year),
                false => {
                    let columns = PackedColumns::All(Box::new(row.packed));
                    facts.put_year(&source, year, row.digest, columns)
                }
            });
        }
    }

    /// Changes the cached facts of a symbol. If `change` returns false, the symbol is removed from the cache.
    fn update_symbol(&mut self, symbol: &str, change: impl FnOnce(&mut SymbolFacts) -> bool) {
        if let Some(mut facts) = self.remove(symbol)
            && change(Arc::make_mut(&mut facts))
        {
            self.insert(symbol, facts);
        }
    }

    /// Removes symbols from the cache.
    pub fn remove_symbols(&mut self, symbols: &[String]) {
        symbols.iter().for_each(|symbol| drop(self.remove(symbol)));
    }

    fn remove(&mut self, symbol: &str) -> Option<Arc<SymbolFacts>> {
        let facts = self.symbols.remove(symbol)?;
        self.bytes -= symbol.len() + facts.size_bytes();
        Some(facts)
    }
}

/// Row of table `records` with new observations.
#[derive(Debug)]
pub struct AppliedRecords {
    /// Key of the row.
    pub key: RecordsKey,
    /// All observations of the row that count, packed, including those from earlier batches. Empty if none counts: the
    /// table then has no such row.
    pub packed: Vec<u8>,
    /// `true` if the table already had a row with this key.
    pub replaces: bool,
    /// `true` if the row changes. Otherwise, there are only new observations that do not count.
    pub changes: bool,
    /// Packed observations that do not count any more. They are inserted into table `superseded_records`.
    pub superseded: Vec<Vec<u8>>,
}

/// Row of table `bars` with new bars.
#[derive(Debug)]
pub struct AppliedBars {
    /// Key of the row.
    pub key: BarsKey,
    /// 64-bit digest of the days, prices and volumes. It does not cover the revision and provenance of the bars.
    pub digest: i64,
    /// All bars of the year that count, including those from earlier batches. Without columns if no bar counts: the table
    /// then has no such row.
    pub packed: PackedBars,
    /// `true` if the table already had a row with this key.
    pub replaces: bool,
    /// `true` if the row changes. Otherwise, there are only new observations that do not count.
    pub changes: bool,
    /// Day number of the newest bar that is not retracted; `None` if all bars are retracted. Day 1 is 0001-01-01.
    pub last_day: Option<i32>,
    /// Bars that do not count any more. They are added to table `superseded_bars`.
    pub superseded: SupersededBars,
}

/// Rows of table `bars` that changed, and the symbols of all other changed rows of the facts.
#[derive(Debug, Default)]
pub struct ChangedFacts {
    /// Changed rows.
    pub years: Vec<AppliedBars>,
    /// Symbols of all other changed rows.
    pub symbols: Vec<String>,
}

impl ChangedFacts {
    /// Adds later changes.
    pub fn extend(&mut self, later: Self) {
        self.years.extend(later.years);
        self.symbols.extend(later.symbols);
    }

    /// Symbols of all changed rows.
    pub fn all_symbols(&self) -> Vec<&str> {
        let of_years = self.years.iter().map(|year| year.key.0.as_str());
        let mut symbols: Vec<&str> = of_years.chain(self.symbols.iter().map(String::as_str)).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }
}

#[cfg(test)]
mod tests {
    use codec::bars::PackedBars;
    use market::bars::{Bars, SupersededBars};
    use market::event::Kind;
    use proptest::prelude::*;

    use super::*;

    const SYMBOLS: [&str; 3] = ["AAA", "BBB", "CCC"];

    #[derive(Debug, Clone)]
    enum CacheStep {
        Read,
        Records {
            kind: Kind,
            packed: Vec<u8>,
        },
        /// Without days, the year has no bars any more.
        Year {
            year: i32,
            digest: i64,
            days: Vec<u8>,
        },
    }

    fn cache_steps() -> impl Strategy<Value = Vec<(usize, CacheStep)>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..400);
        let kinds = prop::sample::select(vec![Kind::Dividend, Kind::Split, Kind::Security]);
        let step = prop_oneof![
            Just(CacheStep::Read),
            (kinds, bytes()).prop_map(|(kind, packed)| CacheStep::Records { kind, packed }),
            (2000..2004, any::<i64>(), bytes()).prop_map(|(year, digest, days)| CacheStep::Year {
                year,
                digest,
                days
            }),
            (2000..2004).prop_map(|year| CacheStep::Year { year, digest: 0, days: Vec::new() }),
        ];
        prop::collection::vec((0..SYMBOLS.len(), step), 0..60)
    }

    #[test]
    fn the_cache_stops_growing_above_the_memory_budget() {
        let facts = || {
            let mut facts = SymbolFacts::default();
            facts.put_records(Kind::Dividend, "feed", &[0; 100]);
            Arc::new(facts)
        };
        let mut cache = FactCache::with_budget(10_000);
        let held = |cache: &FactCache| SYMBOLS.map(|symbol| cache.get(symbol).is_some());
        cache.insert("AAA", facts());
        cache.limit_by_resident_bytes(Some(MIN_PROCESS_BYTES + 1));
        cache.insert("BBB", facts());
        cache.insert("AAA", facts());
        assert_eq!(held(&cache), [true, false, false]);
        for enough in [Some(MIN_PROCESS_BYTES), None] {
            cache.limit_by_resident_bytes(Some(usize::MAX));
            cache.limit_by_resident_bytes(enough);
            cache.insert("CCC", facts());
            assert_eq!(held(&cache), [true, false, true]);
            drop(cache.remove("CCC"));
        }
    }

    #[test]
    fn an_update_of_a_year_packed_with_others_removes_the_symbol() {
        let packed = PackedBars::pack(&Bars::default()).expect("no bars");
        let columns = || PackedColumns::All(Box::new(packed.clone()));
        let written = |year| AppliedBars {
            key: ("AAA".to_owned(), "feed".to_owned(), year),
            digest: 7,
            packed: packed.clone(),
            replaces: true,
            changes: true,
            last_day: None,
            superseded: SupersededBars::default(),
        };
        let mut facts = SymbolFacts::default();
        for year in 2000..2004 {
            assert!(facts.put_year("feed", year, i64::from(year), columns()));
        }
        facts.shrink(|year, _| year < 2002).expect("closes");
        let mut cache = FactCache::with_budget(100_000);
        cache.insert("AAA", Arc::new(facts));
        cache.update_years(vec![written(2003)]);
        assert!(cache.get("AAA").is_some_and(|facts| facts.year("feed", 2003).is_some()));
        cache.update_years(vec![written(2001)]);
        assert!(cache.get("AAA").is_none() && cache.bytes() == 0);
    }

    proptest! {
        #[test]
        fn cached_facts_equal_stored_ones_and_fit_the_budget(steps in cache_steps(), budget in 0usize..4_000) {
            let mut stored: HashMap<&str, SymbolFacts> = HashMap::new();
            let mut cache = FactCache::with_budget(budget);
            for (symbol, step) in steps {
                let symbol = SYMBOLS[symbol];
                let facts = stored.entry(symbol).or_default();
                match step {
                    CacheStep::Read => cache.insert(symbol, Arc::new(facts.clone())),
                    CacheStep::Records { kind, packed } => {
                        if SymbolFacts::has_kind(kind) {
                            facts.put_records(kind, "feed", &packed);
                        }
                        let key = RecordsKey { symbol: symbol.to_owned(), kind, source: "feed".to_owned() };
                        cache.update_records(&[AppliedRecords { key, packed, replaces: false, changes: true, superseded: Vec::new() }]);
                    }
                    CacheStep::Year { year, digest, days } => {
                        let packed = PackedBars { days, ..PackedBars::default() };
                        let columns = PackedColumns::All(Box::new(packed.clone()));
                        assert!(match packed.days.is_empty() {
                            true => facts.remove_year("feed", year),
                            false => facts.put_year("feed", year, digest, columns),
                        });
                        let key = (symbol.to_owned(), "feed".to_owned(), year);
                        let written = AppliedBars { key, digest, packed, replaces: false, changes: true, last_day: None, superseded: SupersededBars::default() };
                        cache.update_years(vec![written]);
                    }
                }
                for (symbol, held) in &cache.symbols {
                    prop_assert_eq!(held.as_ref(), &stored[symbol.as_str()]);
                }
                let bytes: usize = cache.symbols.iter().map(|(symbol, held)| symbol.len() + held.size_bytes()).sum();
                prop_assert!(bytes == cache.bytes && bytes <= budget, "{} of {}", bytes, budget);
            }
        }
    }
}
