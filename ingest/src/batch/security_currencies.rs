//! Currency and unit of each security's prices, from the reference records (R39).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use event_log::record_batch::Body;
use market::event::{Action, EventRow, Kind, Security};
use market::metrics::currency::Currency;
use market::symbol::Symbol;

use crate::log::reader::{Log, LogError};

/// Currency and unit of each security's prices, by symbol. The newest reference record of a symbol decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecurityCurrencies(BTreeMap<Symbol, (DateTime<Utc>, Currency)>);

impl SecurityCurrencies {
    /// Reads the reference records of all sources in log messages before `before_sequence`.
    pub(crate) async fn read(log: &Log, before_sequence: u64) -> Result<Self, LogError> {
        let mut known = Self::default();
        let each = |batch: event_log::record_batch::RecordBatch| {
            if let Body::Securities(rows) = &batch.body {
                rows.iter().for_each(|row| known.add_row(row));
            }
        };
        log.each_batch(Kind::Security, before_sequence, |_| true, each).await?;
        Ok(known)
    }

    pub(crate) fn add_row(&mut self, row: &EventRow<Security>) {
        if row.action == Action::Put {
            self.add_record(&row.record.symbol, row.observed_at, Currency::of_prices(Some(&row.record)));
        }
    }

    /// Adds the currencies of another file. If both files have a record of a symbol, the newer record decides.
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

    /// Currency and unit of a symbol's prices; US dollars without a reference record.
    pub(crate) fn find(&self, symbol: &Symbol) -> Currency {
        self.0.get(symbol).map_or_else(Currency::dollar, |(_, currency)| currency.clone())
    }
}
