//! Security identity and its ticker tenures: the days on which rows of a symbol belong to it.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::event::{FormerSymbol, Security};
use crate::observation::Observation;
use crate::symbol::Symbol;

/// Symbol with the days (inclusive) on which its rows belong to a security.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TickerTenure {
    /// The symbol.
    pub symbol: Symbol,
    /// First day.
    pub from: NaiveDate,
    /// Last day.
    pub to: NaiveDate,
}

/// Identity of a served security.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Canonical symbol: the current or last one.
    pub symbol: Symbol,
    /// Reference record; `None` for a provisional security.
    pub security: Option<Observation<Security>>,
    /// Symbols of the security, each with the days on which its rows belong to the security.
    pub spans: Vec<TickerTenure>,
}

impl Identity {
    /// Identity of a security known only by its rows.
    pub fn provisional(symbol: &Symbol) -> Self {
        let span = TickerTenure { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        Self { symbol: symbol.clone(), security: None, spans: vec![span] }
    }

    /// Former symbols.
    pub fn former_symbols(&self) -> Vec<FormerSymbol> {
        self.security.as_ref().map(|s| s.record.former_symbols.clone()).unwrap_or_default()
    }

    /// True if a row of `symbol` dated `date` belongs to the security.
    pub fn owns(&self, symbol: &str, date: NaiveDate) -> bool {
        self.spans.iter().any(|span| span.symbol.as_str() == symbol && span.from <= date && date <= span.to)
    }
}
