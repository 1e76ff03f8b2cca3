//! Identity of a security, and its ticker tenures. A tenure is a symbol with the period in which the symbol belongs to
//! the security.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::event::{FormerSymbol, Security};
use crate::observation::Observation;
use crate::symbol::Symbol;

/// Symbol of a security, and the period in which rows with this symbol belong to the security.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TickerTenure {
    /// Symbol in the period.
    pub symbol: Symbol,
    /// First day of the period.
    pub from: NaiveDate,
    /// Last day of the period, included.
    pub to: NaiveDate,
}

/// Identity of a security: its reference record and its symbols, past and present.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Canonical symbol: the current symbol, or the last one of a delisted security.
    pub symbol: Symbol,
    /// Reference record; `None` for a provisional security.
    pub security: Option<Observation<Security>>,
    /// Current and former symbols of the security, each with the period in which it belongs to the security.
    pub spans: Vec<TickerTenure>,
}

impl Identity {
    /// Identity of a security without a reference record.
    pub fn provisional(symbol: &Symbol) -> Self {
        let span = TickerTenure { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        Self { symbol: symbol.clone(), security: None, spans: vec![span] }
    }

    /// Former symbols with the days of their use.
    pub fn former_symbols(&self) -> Vec<FormerSymbol> {
        self.security.as_ref().map(|s| s.record.former_symbols.clone()).unwrap_or_default()
    }

    /// True if a row of `symbol` dated `date` belongs to the security.
    pub fn owns(&self, symbol: &str, date: NaiveDate) -> bool {
        self.spans.iter().any(|span| span.symbol.as_str() == symbol && span.from <= date && date <= span.to)
    }
}
