//! Claims of securities to symbols. A claim is the statement that a security uses a symbol in a period. Claims come
//! from the security's reference records. If several securities claim one symbol, the days of the symbol are divided
//! among the claims.
//!
//! Identity of a security, and its ticker tenures. A tenure is a symbol with the period in which the symbol belongs to
//! the security.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::address::{at_market, identifier_keys, mic};
use crate::day::{next_day, previous_day};
use crate::event::{FormerSymbol, ListingStatus, Security};
use crate::observation::Observation;
use crate::symbol::Symbol;

/// Claim that a security uses `symbol` from the day `from` to the day `to`. It comes from the security's reference
/// records.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) security: usize,
    pub(super) symbol: Symbol,
    pub(super) from: NaiveDate,
    pub(super) to: NaiveDate,
    pub(super) current: bool,
}

/// Claims of one security, one per symbol. The current symbol is claimed from the last rename, or else from the IPO, to
/// the delisting.
pub(super) fn claims_of(members: &[&Observation<Security>], security: usize) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for record in members.iter().map(|member| &member.record) {
        let renamed =
            record.former_symbols.iter().filter(|f| f.symbol != record.symbol).filter_map(|f| f.to).max();
        let from = renamed.map(next_day).or(record.ipo_date).unwrap_or(NaiveDate::MIN);
        let delisted = record.delisted_on.filter(|_| record.status == ListingStatus::Delisted);
        let to = delisted.unwrap_or(NaiveDate::MAX).max(from);
        let mut add = |symbol: &Symbol, from: NaiveDate, to: NaiveDate, current: bool| match claims
            .iter_mut()
            .find(|claim| claim.symbol == *symbol)
        {
            Some(claim) => {
                (claim.from, claim.to, claim.current) =
                    (claim.from.min(from), claim.to.max(to), claim.current || current)
            }
            None => claims.push(Claim { security, symbol: symbol.clone(), from, to, current }),
        };
        add(&record.symbol, from, to, true);
        for former in record.former_symbols.iter().filter(|f| f.symbol != record.symbol) {
            let from_day = former.from.unwrap_or(NaiveDate::MIN);
            let to = former.to.unwrap_or_else(|| previous_day(from));
            add(&former.symbol, from_day, to.max(from_day), false);
        }
    }
    claims
}

/// Divides all days among the sorted claims of one symbol, as first and last day of each claim. A claim extends to the
/// start of the next one.
pub(super) fn divide_days(claims: &[Claim]) -> Vec<(NaiveDate, NaiveDate)> {
    let mut starts = vec![NaiveDate::MIN];
    for pair in claims.windows(2) {
        // Of two claims with the same start, the second begins after the end of the first.
        let start = if pair[1].from > pair[0].from { pair[1].from } else { next_day(pair[0].to) };
        starts.push(start.max(next_day(starts[starts.len() - 1])));
    }
    let ends = starts.iter().skip(1).map(|next| previous_day(*next)).chain([NaiveDate::MAX]);
    starts.iter().copied().zip(ends).collect()
}

/// Symbol of a security, and the period in which rows with this symbol belong to the security.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TickerTenure {
    /// Symbol of the security in the period.
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
    /// Current and former symbols of the security. Each symbol has the period in which it belongs to the security.
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

    /// True if the security is not delisted.
    pub(super) fn is_active(&self) -> bool {
        self.security.as_ref().is_none_or(|security| security.record.status == ListingStatus::Active)
    }

    /// Market identifier code of the listing; `None` if it is unknown.
    pub(super) fn market(&self) -> Option<String> {
        mic(self.security.as_ref()?.record.exchange.as_deref()?)
    }

    /// Identifiers of the security, each without and with the market.
    pub(super) fn addresses(&self) -> Vec<String> {
        let mut keys =
            self.security.as_ref().map(|security| identifier_keys(&security.record)).unwrap_or_default();
        if let Some(market) = self.market() {
            keys.extend(keys.iter().map(|key| at_market(key, &market)).collect::<Vec<_>>());
        }
        keys
    }

    /// True if a row with this symbol and this date belongs to the security.
    pub fn owns(&self, symbol: &str, date: NaiveDate) -> bool {
        self.spans.iter().any(|span| span.symbol.as_str() == symbol && span.from <= date && date <= span.to)
    }
}
