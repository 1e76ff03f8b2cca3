//! Facts that stay in memory between batches, so that deriving a day seldom reads any: packed as they are stored, within a budget.
//!
//! What is held is what the tables hold as of this projector's last statement. Whoever else writes facts takes the lease
//! from it (`dead-letters retry` does), and what it held is gone with the lease. A day visits every symbol in the same
//! order, so what is there stays and the rest is read each time: dropping the oldest would drop what is needed next. What facts
//! take is counted about; what the process takes is looked at, and above the budget nothing more is held.

use std::collections::HashMap;
use std::sync::Arc;

use store::symbol_facts::{Columns, SymbolFacts};

use crate::facts::applied_facts::{AppliedBars, AppliedRecords};

/// What the process may take in any case: for connections, what tells served rows apart, chunks that are derived.
const MIN_PROCESS_BYTES: usize = 128 << 20;

/// Facts of some symbols, each whole.
#[derive(Debug, Default)]
pub struct FactCache {
    symbols: HashMap<String, Arc<SymbolFacts>>,
    bytes: usize,
    budget: usize,
    /// Bytes that may be held as things stand: the budget, or less where the process takes more than it should.
    limit: usize,
}

impl FactCache {
    /// Holds up to so many bytes of facts, about.
    pub fn with_budget(budget: usize) -> Self {
        Self { budget, limit: budget, ..Self::default() }
    }

    /// Holds nothing.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// The facts of a symbol, when they are held.
    pub fn get(&self, symbol: &str) -> Option<&Arc<SymbolFacts>> {
        self.symbols.get(symbol)
    }

    /// Whether nothing may be held.
    pub fn is_disabled(&self) -> bool {
        self.budget == 0
    }

    /// Bytes of facts that are held, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes note of the memory that the process has, where that is known: when it is nearly the budget, no more is held than
    /// there is. What is derived and merged next takes some, too.
    pub fn observe_rss(&mut self, taken: Option<usize>) {
        let is_over =
            taken.is_some_and(|taken| taken > (self.budget - self.budget / 8).max(MIN_PROCESS_BYTES));
        self.limit = if is_over { self.limit.min(self.bytes) } else { self.budget };
    }

    /// Holds the facts of a symbol, in place of those that were held, where there is room.
    pub fn insert(&mut self, symbol: &str, facts: Arc<SymbolFacts>) {
        self.remove(symbol);
        let bytes = symbol.len() + facts.size();
        if self.bytes + bytes <= self.limit {
            self.bytes += bytes;
            self.symbols.insert(symbol.to_owned(), facts);
        }
    }

    /// Follows rows of records that were written. Of symbols that are not held nothing is known still.
    pub fn update_records(&mut self, written: &[AppliedRecords]) {
        for row in written {
            if SymbolFacts::keeps(row.key.kind) {
                self.update_symbol(&row.key.symbol, |facts| {
                    facts.put_records(row.key.kind, &row.key.source, &row.packed);
                    true
                });
            }
        }
    }

    /// Follows years of bars that were written. Where one is packed together with others, all of its symbol are read again.
    pub fn update_years(&mut self, written: Vec<AppliedBars>) {
        for row in written {
            let (symbol, source, year) = row.key;
            let columns = Columns::All(Box::new(row.packed));
            self.update_symbol(&symbol, |facts| facts.put_year(&source, year, row.digest, columns));
        }
    }

    /// Changes a symbol's facts, or forgets them where that cannot be.
    fn update_symbol(&mut self, symbol: &str, change: impl FnOnce(&mut SymbolFacts) -> bool) {
        if let Some(mut facts) = self.remove(symbol)
            && change(Arc::make_mut(&mut facts))
        {
            self.insert(symbol, facts);
        }
    }

    fn remove(&mut self, symbol: &str) -> Option<Arc<SymbolFacts>> {
        let facts = self.symbols.remove(symbol)?;
        self.bytes -= symbol.len() + facts.size();
        Some(facts)
    }
}

#[cfg(test)]
mod tests {
    use market::bars::{Bars, Packed};
    use market::event::Kind;
    use proptest::prelude::*;

    use super::*;
    use crate::facts::applied_facts::RecordsKey;

    const SYMBOLS: [&str; 3] = ["AAA", "BBB", "CCC"];

    /// What happens to a symbol.
    #[derive(Debug, Clone)]
    enum CacheStep {
        Read,
        Records { kind: Kind, packed: Vec<u8> },
        Year { year: i32, digest: i64, close: Vec<u8> },
    }

    fn cache_steps() -> impl Strategy<Value = Vec<(usize, CacheStep)>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..400);
        let kinds = prop::sample::select(vec![Kind::Dividend, Kind::Split, Kind::Security]);
        let step = prop_oneof![
            Just(CacheStep::Read),
            (kinds, bytes()).prop_map(|(kind, packed)| CacheStep::Records { kind, packed }),
            (2000..2004, any::<i64>(), bytes()).prop_map(|(year, digest, close)| CacheStep::Year {
                year,
                digest,
                close
            }),
        ];
        prop::collection::vec((0..SYMBOLS.len(), step), 0..60)
    }

    #[test]
    fn where_the_process_takes_too_much_nothing_more_is_held() {
        let facts = || {
            let mut facts = SymbolFacts::default();
            facts.put_records(Kind::Dividend, "feed", &[0; 100]);
            Arc::new(facts)
        };
        let mut cache = FactCache::with_budget(10_000);
        let held = |cache: &FactCache| SYMBOLS.map(|symbol| cache.get(symbol).is_some());
        cache.insert("AAA", facts());
        cache.observe_rss(Some(MIN_PROCESS_BYTES + 1));
        cache.insert("BBB", facts());
        cache.insert("AAA", facts());
        assert_eq!(held(&cache), [true, false, false]);
        for enough in [Some(MIN_PROCESS_BYTES), None] {
            cache.observe_rss(Some(usize::MAX));
            cache.observe_rss(enough);
            cache.insert("CCC", facts());
            assert_eq!(held(&cache), [true, false, true]);
            drop(cache.remove("CCC"));
        }
    }

    #[test]
    fn a_year_that_is_packed_with_others_takes_its_symbol_along() {
        let packed = Bars::default().pack().expect("no bars");
        let columns = || Columns::All(Box::new(packed.clone()));
        let written = |year| AppliedBars {
            key: ("AAA".to_owned(), "feed".to_owned(), year),
            digest: 7,
            packed: packed.clone(),
            replaces: true,
            last_day: None,
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
        fn what_is_held_is_what_is_stored_and_fits(steps in cache_steps(), budget in 0usize..4_000) {
            let mut stored: HashMap<&str, SymbolFacts> = HashMap::new();
            let mut cache = FactCache::with_budget(budget);
            for (symbol, step) in steps {
                let symbol = SYMBOLS[symbol];
                let facts = stored.entry(symbol).or_default();
                match step {
                    CacheStep::Read => cache.insert(symbol, Arc::new(facts.clone())),
                    CacheStep::Records { kind, packed } => {
                        if SymbolFacts::keeps(kind) {
                            facts.put_records(kind, "feed", &packed);
                        }
                        let key = RecordsKey { symbol: symbol.to_owned(), kind, source: "feed".to_owned() };
                        cache.update_records(&[AppliedRecords { key, packed, replaces: false }]);
                    }
                    CacheStep::Year { year, digest, close } => {
                        let packed = Packed { close, ..Packed::default() };
                        let columns = Columns::All(Box::new(packed.clone()));
                        assert!(facts.put_year("feed", year, digest, columns));
                        let key = (symbol.to_owned(), "feed".to_owned(), year);
                        let written = AppliedBars { key, digest, packed, replaces: false, last_day: None };
                        cache.update_years(vec![written]);
                    }
                }
                for (symbol, held) in &cache.symbols {
                    prop_assert_eq!(held.as_ref(), &stored[symbol.as_str()]);
                }
                let bytes: usize = cache.symbols.iter().map(|(symbol, held)| symbol.len() + held.size()).sum();
                prop_assert!(bytes == cache.bytes && bytes <= budget, "{} of {}", bytes, budget);
            }
        }
    }
}
