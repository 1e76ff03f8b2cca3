//! Exchange rate of one day.

use chrono::{Datelike, NaiveDate};
use compact_str::CompactString;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::symbol::Symbol;

/// Exchange rate of one day: one unit of `base` costs `rate` units of `quote` (R41).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FxRate {
    /// Key of the facts: the currencies and the calendar year, for example `EURUSD:2024`. A ticker never has a
    /// colon.
    pub symbol: Symbol,
    /// ISO 4217 code of the base currency.
    pub base: CompactString,
    /// ISO 4217 code of the quote currency.
    pub quote: CompactString,
    /// Day of the rate.
    pub date: NaiveDate,
    /// Units of `quote` for one unit of `base`.
    pub rate: Decimal,
}

impl FxRate {
    /// Creates the rate of a day.
    pub fn new(base: &str, quote: &str, date: NaiveDate, rate: Decimal) -> Self {
        let symbol = Symbol::from_stored(&format!("{base}{quote}:{}", date.year()));
        Self { symbol, base: base.into(), quote: quote.into(), date, rate }
    }

    /// Base, quote and year of a key of exchange rates; `None` for another symbol.
    pub fn parse_key(symbol: &str) -> Option<(&str, &str, i32)> {
        let (pair, year) = symbol.split_once(':')?;
        let (base, quote) = pair.split_at_checked(3)?;
        Some((base, quote, year.parse().ok()?))
    }

    /// True if a symbol of stored facts is the key of exchange rates.
    pub fn is_key(symbol: &str) -> bool {
        symbol.contains(':')
    }
}
