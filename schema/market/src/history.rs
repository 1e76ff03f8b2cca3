//! Everything known about one security: what `measure::derive` concludes from.
//!
//! Facts keep every distinct observation of every source; nothing is chosen before `measure` does it, so that
//! the choice can be explained and changes with a policy without loading again.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::bars::Bars;
use crate::event::{
    Decision, Dividend, Etf, FormerSymbol, Fundamentals, HoldingSnapshot, Kind, Security, Split,
};
use crate::record::Record;
use crate::records::{self, PackedRecordsError};
use crate::symbol::Symbol;

pub use crate::observation::Observation;

/// One source's bars of a security, sorted by day, one per day, retracted ones included.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceBars {
    /// Feed they came from.
    pub source: String,
    /// The bars.
    pub bars: Bars,
    /// Calendar years of whose bars only day, close and version were read; all else is absent there.
    pub closes_only: Vec<i32>,
}

/// Which source wins, per kind and date range: the lower rank first; sources without a rule come last.
#[derive(Debug, Clone, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourcePolicy {
    /// Its rules; their order says nothing.
    pub rules: Vec<PolicyRule>,
}

/// Two are equal when they have the same rules, in whatever order.
impl PartialEq for SourcePolicy {
    fn eq(&self, other: &Self) -> bool {
        let within = |a: &Self, b: &Self| a.rules.iter().all(|rule| b.rules.contains(rule));
        within(self, other) && within(other, self)
    }
}

/// One line of the source policy. Absent bounds are open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// Kind of the rows it ranks.
    pub kind: Kind,
    /// Feed it ranks.
    pub source: String,
    /// First day it holds.
    pub from: Option<NaiveDate>,
    /// Last day it holds.
    pub to: Option<NaiveDate>,
    /// The rank: the lower is believed.
    pub rank: i32,
}

/// All facts of one security.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The canonical symbol: the current one, or the last one.
    pub symbol: Symbol,
    /// Symbols it held before.
    pub former_symbols: Vec<FormerSymbol>,
    /// Reference data that won; `None` for a provisional security known only by its rows.
    pub security: Option<Observation<Security>>,
    /// Of every source, every revision.
    pub dividends: Vec<Observation<Dividend>>,
    /// Of every source, every revision.
    pub splits: Vec<Observation<Split>>,
    /// Of every source, every revision.
    pub fundamentals: Vec<Observation<Fundamentals>>,
    /// Reference data of the fund, of every source.
    pub etf: Vec<Observation<Etf>>,
    /// The fund's snapshots, of every source.
    pub holdings: Vec<Observation<HoldingSnapshot>>,
    /// What people decided about held rows.
    pub decisions: Vec<Observation<Decision>>,
    /// One entry per source.
    pub prices: Vec<SourceBars>,
}

/// Declares which kinds of records a history keeps, and where.
macro_rules! kept {
    ($($record:ident => $list:ident),* $(,)?) => {
        impl History {
            /// Adds what a source said of one kind, from its packed records, as far as the security owns the day that it
            /// concerns. Kinds that are not kept add nothing.
            pub fn add(
                &mut self,
                kind: Kind,
                source: &str,
                packed: &[u8],
                owns: impl Fn(NaiveDate) -> bool,
            ) -> Result<(), PackedRecordsError> {
                $(if kind == $record::KIND {
                    let mut said = records::read::<$record>(source, packed)?;
                    said.retain(|observation| observation.record.date().is_none_or(&owns));
                    // Nearly always of one source and symbol.
                    match self.$list.is_empty() {
                        true => self.$list = said,
                        false => self.$list.append(&mut said),
                    }
                })*
                Ok(())
            }
        }
    };
}

kept! {
    Dividend => dividends,
    Split => splits,
    Fundamentals => fundamentals,
    Etf => etf,
    HoldingSnapshot => holdings,
    Decision => decisions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_a_policys_rules_says_nothing() {
        let rule = |rank| PolicyRule { kind: Kind::Price, source: "a".into(), from: None, to: None, rank };
        let policy = |ranks: &[i32]| SourcePolicy { rules: ranks.iter().copied().map(rule).collect() };
        assert_eq!(policy(&[1, 2]), policy(&[2, 1]));
        assert_ne!(policy(&[1, 2]), policy(&[1]));
        assert_ne!(policy(&[1]), policy(&[1, 2]));
    }
}
