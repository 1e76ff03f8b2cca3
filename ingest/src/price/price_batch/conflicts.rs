//! Conflicting rows of a price batch.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use market::day::date_of;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::{PriceBatch, ScaledPriceRow, SymbolId};
use crate::price::conflicting_prices::{ConflictingPrice, are_in_conflict};

impl PriceBatch {
    /// Removes the rows whose close is in conflict with the first row of their symbol, day and version (R29).
    pub(crate) fn remove_conflicts(&mut self, symbol_names: &[Symbol]) -> Vec<ConflictingPrice> {
        let repeated = self.symbols_with_repeated_days(symbol_names.len());
        if repeated.is_empty() {
            return Vec::new();
        }
        let mut first: HashMap<(SymbolId, i32, u16), usize> = HashMap::new();
        let (mut conflicts, mut removed) = (Vec::new(), HashSet::new());
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| repeated.contains(&row.symbol)) {
            let used = *first.entry((row.symbol, row.day, row.version)).or_insert(index);
            let [used, other] = [&self.rows[used], row].map(|row| (row.close(), row.line));
            if !self.versions[usize::from(row.version)].retracted && are_in_conflict(used.0, other.0) {
                removed.insert(index);
                conflicts.push(ConflictingPrice {
                    symbol: symbol_names[row.symbol as usize].clone(),
                    date: date_of(row.day),
                    used: used.0,
                    used_line: used.1,
                    other: other.0,
                    other_line: other.1,
                });
            }
        }
        retain_others(&mut self.rows, &removed);
        retain_others(&mut self.extras, &removed);
        conflicts
    }

    /// Symbols that may have two rows of one day: their days are neither ascending nor descending. Most files have none.
    fn symbols_with_repeated_days(&self, symbols: usize) -> HashSet<SymbolId> {
        let mut last: Vec<Option<(i32, Ordering)>> = vec![None; symbols];
        let mut repeated = HashSet::new();
        for row in &self.rows {
            let known = &mut last[row.symbol as usize];
            let order = known.map(|(day, _)| row.day.cmp(&day));
            let is_continued = match (*known, order) {
                (Some((_, before)), Some(order)) => {
                    order != Ordering::Equal && (before == Ordering::Equal || before == order)
                }
                _ => true,
            };
            if !is_continued {
                repeated.insert(row.symbol);
            }
            *known = Some((row.day, order.unwrap_or(Ordering::Equal)));
        }
        repeated
    }
}

impl ScaledPriceRow {
    fn close(&self) -> Decimal {
        Decimal::new(self.close, u32::from(self.scale))
    }
}

/// Removes the entries with the indexes in `removed`.
fn retain_others<T>(entries: &mut Vec<T>, removed: &HashSet<usize>) {
    let mut index = 0;
    entries.retain(|_| {
        index += 1;
        !removed.contains(&(index - 1))
    });
}
