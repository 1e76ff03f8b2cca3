//! A security and the days on which rows of a symbol are its own.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::event::{FormerSymbol, Security};
use crate::observation::Observation;
use crate::symbol::Symbol;

/// A symbol and the days (inclusive) on which its rows belong to a security.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The symbol.
    pub symbol: Symbol,
    /// First day.
    pub from: NaiveDate,
    /// Last day.
    pub to: NaiveDate,
}

/// One served security.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Canonical symbol: the current one, or the last one.
    pub symbol: Symbol,
    /// `None` for a provisional security.
    pub security: Option<Observation<Security>>,
    /// Where its rows are.
    pub spans: Vec<Span>,
}

impl Identity {
    /// A security known only by its rows.
    pub fn provisional(symbol: &Symbol) -> Self {
        let span = Span { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        Self { symbol: symbol.clone(), security: None, spans: vec![span] }
    }

    /// Symbols held before the current one.
    pub fn former_symbols(&self) -> Vec<FormerSymbol> {
        self.security.as_ref().map(|s| s.record.former_symbols.clone()).unwrap_or_default()
    }

    /// Whether a row of `symbol` dated `date` is this security's.
    pub fn owns(&self, symbol: &str, date: NaiveDate) -> bool {
        self.spans.iter().any(|span| span.symbol.as_str() == symbol && span.from <= date && date <= span.to)
    }
}
