//! Counts of dividends without a currency (R39).

use std::collections::BTreeMap;

use market::symbol::Symbol;

use crate::batch::security_currencies::SecurityCurrencies;

/// Maximum number of symbols with a separate count, which limits memory.
const MAX_SYMBOLS: usize = 200_000;

/// Counts of dividends without a currency, by symbol.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissingCurrencyCounts {
    dividends: BTreeMap<Symbol, u64>,
    /// Number of dividends of symbols beyond `MAX_SYMBOLS`.
    others: u64,
}

impl MissingCurrencyCounts {
    pub(crate) fn add_dividend(&mut self, symbol: &Symbol) {
        self.add_dividends(symbol, 1);
    }

    fn add_dividends(&mut self, symbol: &Symbol, count: u64) {
        let has_room = self.dividends.len() < MAX_SYMBOLS;
        match self.dividends.get_mut(symbol) {
            Some(known) => *known += count,
            None if has_room => {
                self.dividends.insert(symbol.clone(), count);
            }
            None => self.others += count,
        }
    }

    /// Adds the counts of another file.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.dividends.iter().for_each(|(symbol, count)| self.add_dividends(symbol, *count));
        self.others += other.others;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.dividends.is_empty()
    }

    /// Number of dividends without a currency.
    pub(crate) fn count(&self) -> u64 {
        self.dividends.values().sum::<u64>() + self.others
    }

    /// Counts of dividends by assumed currency unit: the unit of the security's prices. Dividends of symbols beyond
    /// `MAX_SYMBOLS` are not included.
    pub(crate) fn count_by_unit(&self, known: &SecurityCurrencies) -> BTreeMap<String, u64> {
        let mut units = BTreeMap::new();
        for (symbol, count) in &self.dividends {
            *units.entry(known.find(symbol).unit().to_owned()).or_default() += count;
        }
        units
    }
}
