//! Statistics of a file or load: records, rows by kind, rejects by reason.
//!
//! Currencies of securities, and numbers of rows without a currency, for the summary of a load. The derivation later
//! gives a dividend without a currency the currency of its security (R39). The currency of prices is that of the security
//! record, else the one that a load names for them (R4), else US dollars.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use event_log::record_batch::Body;
use market::event::{Action, EventRow, Kind, Reject, Security};
use market::metrics::currency::Currency;
use market::symbol::Symbol;
use telemetry::Sample;

use crate::batch::coverage::LoadCoverage;
use crate::batch::retractions::Retractions;
use crate::batch::reviewed_rows::ReviewedRows;
use crate::log::reader::{Log, LogError};
use crate::price::conflicting_prices::ConflictingPrices;

/// Maximum number of rejects in the summary.
const MAX_EXAMPLES: usize = 10;

/// Statistics of the records that were read from a file or load.
#[derive(Debug, Default, Clone)]
pub struct LoadStats {
    /// Number of records that were read, including rejects.
    pub records: u64,
    pub rows: BTreeMap<Kind, u64>,
    pub rejects: BTreeMap<&'static str, u64>,
    /// Number of records that the map skips, by reason.
    pub skipped: BTreeMap<String, u64>,
    pub rounded: u64,
    pub examples: Vec<Reject>,
    /// Coverage of the accepted rows.
    pub(crate) coverage: LoadCoverage,
    /// Counts of dividends without a currency. Such a dividend gets the currency of its security.
    pub(crate) missing_currencies: MissingCurrencyCounts,
    /// Securities without a currency. US dollars are assumed for them.
    pub(crate) securities_without_currency: AssumedDollars,
    /// Currencies of securities, from the reference records among the accepted rows.
    pub(crate) currencies: SecurityCurrencies,
    /// Accepted rows for the review at the end of the load. The review checks these rows against the domain rules.
    pub(crate) reviewed: ReviewedRows,
    /// Prices of one day that differ.
    pub(crate) conflicting_prices: ConflictingPrices,
    /// Retractions among the accepted rows.
    pub(crate) retractions: Retractions,
}

impl LoadStats {
    /// Counts a reject.
    pub(crate) fn count_reject(&mut self, reason: &'static str, reject: &Reject) {
        *self.rejects.entry(reason).or_default() += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(reject.clone());
        }
    }

    /// Counts a record that the map skips.
    pub(crate) fn count_skipped(&mut self, reason: String) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Number of rejects.
    pub fn rejected_count(&self) -> u64 {
        self.rejects.values().sum()
    }

    /// Number of accepted rows of all kinds.
    pub fn accepted_count(&self) -> u64 {
        self.rows.values().sum()
    }

    /// Adds the statistics of another file.
    pub fn merge(&mut self, mut other: Self) {
        self.records += other.records;
        self.rounded += other.rounded;
        self.missing_currencies.merge(&other.missing_currencies);
        self.securities_without_currency.merge(&other.securities_without_currency);
        self.currencies.merge(&other.currencies);
        self.conflicting_prices.merge(&other.conflicting_prices);
        self.reviewed.merge(std::mem::take(&mut other.reviewed));
        self.coverage.merge(&other.coverage);
        self.retractions.merge(&other.retractions);
        other.rows.iter().for_each(|(kind, rows)| *self.rows.entry(*kind).or_default() += rows);
        other.rejects.iter().for_each(|(reason, rows)| *self.rejects.entry(reason).or_default() += rows);
        other.skipped.iter().for_each(|(why, rows)| *self.skipped.entry(why.clone()).or_default() += rows);
        let room = MAX_EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }
}

/// Maximum number of symbols with a separate count of dividends. The dividends of all further symbols have one common
/// count, to limit memory.
const MAX_SYMBOLS: usize = 200_000;

/// Currency and unit of the prices of each symbol, for example British pounds and pence. Both come from the newest
/// security record of the symbol, or from a load of its prices.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecurityCurrencies(BTreeMap<Symbol, (DateTime<Utc>, Currency)>);

impl SecurityCurrencies {
    /// Reads the security records of all sources from the log. If some of `symbols` have none, also reads the currencies
    /// that loads name for prices. They are evidence, of which a log may have much more.
    pub(crate) async fn read<'s>(
        log: &Log,
        mut symbols: impl Iterator<Item = &'s Symbol>,
    ) -> Result<Self, LogError> {
        let mut known = Self::default();
        let each = |batch: event_log::record_batch::RecordBatch| {
            if let Body::Securities(rows) = &batch.body {
                rows.iter().for_each(|row| known.add_row(row));
            }
        };
        log.each_batch(Kind::Security, each).await?;
        if symbols.all(|symbol| known.contains(symbol)) {
            return Ok(known);
        }
        let mut priced = Vec::new();
        let each = |batch: event_log::record_batch::RecordBatch| {
            if let Body::Evidence(rows) = &batch.body {
                let units = rows
                    .iter()
                    .filter_map(|row| Some((&row.record.symbol, row.record.price_unit.as_deref()?)));
                priced.extend(units.map(|(symbol, unit)| (symbol.clone(), unit.to_owned())));
            }
        };
        log.each_batch(Kind::Evidence, each).await?;
        for (symbol, unit) in priced {
            Currency::parse(&unit).iter().for_each(|currency| known.add_price_currency(&symbol, currency));
        }
        Ok(known)
    }

    pub(crate) fn add_row(&mut self, row: &EventRow<Security>) {
        if row.action == Action::Put {
            let currency = Currency::of_prices(Some(&row.record));
            let former = row.record.former_symbols.iter().map(|former| &former.symbol);
            for symbol in std::iter::once(&row.record.symbol).chain(former) {
                self.add_record(symbol, row.observed_at, currency.clone());
            }
        }
    }

    /// Adds the currency that a load names for a symbol's prices. A security record is preferred.
    pub(crate) fn add_price_currency(&mut self, symbol: &Symbol, currency: &Currency) {
        self.add_record(symbol, DateTime::<Utc>::MIN_UTC, currency.clone());
    }

    /// Adds the currencies of another file. If both files have a record of a symbol, the newer record is used.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (symbol, (observed_at, currency)) in &other.0 {
            self.add_record(symbol, *observed_at, currency.clone());
        }
    }

    fn add_record(&mut self, symbol: &Symbol, observed_at: DateTime<Utc>, currency: Currency) {
        if self.0.get(symbol).is_none_or(|(known, _)| *known <= observed_at) {
            self.0.insert(symbol.clone(), (observed_at, currency));
        }
    }

    pub(crate) fn contains(&self, symbol: &Symbol) -> bool {
        self.0.contains_key(symbol)
    }

    /// Currency and unit of a symbol's prices; US dollars if the symbol has no security record.
    pub(crate) fn find(&self, symbol: &Symbol) -> Currency {
        self.0.get(symbol).map_or_else(Currency::dollar, |(_, currency)| currency.clone())
    }
}

/// Symbols whose prices are assumed to be in US dollars, or the symbols of such rows.
pub(crate) type AssumedDollars = Sample<Symbol>;

/// Number of dividends without a currency, by symbol.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissingCurrencyCounts {
    dividends: BTreeMap<Symbol, u64>,
    /// Total for all symbols without a separate count. Only the first [`MAX_SYMBOLS`] symbols have separate counts.
    others: u64,
}

impl MissingCurrencyCounts {
    pub(crate) fn add_dividends(&mut self, symbol: &Symbol, count: u64) {
        let has_room = self.dividends.len() < MAX_SYMBOLS;
        match self.dividends.get_mut(symbol) {
            Some(known) => *known += count,
            None if has_room => {
                self.dividends.insert(symbol.clone(), count);
            }
            None => self.others += count,
        }
    }

    /// Symbols with a count.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.dividends.keys()
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

    /// Number of dividends without a currency, by the price unit of the security, for example GBX (pence). The amounts
    /// are assumed to be in this unit. Only the first [`MAX_SYMBOLS`] symbols are counted.
    pub(crate) fn count_by_unit(&self, known: &SecurityCurrencies) -> BTreeMap<String, u64> {
        let mut units = BTreeMap::new();
        for (symbol, count) in &self.dividends {
            *units.entry(known.find(symbol).unit().to_owned()).or_default() += count;
        }
        units
    }
}
