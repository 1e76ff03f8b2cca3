//! History of one security: every distinct observation from every source. The module `metrics` chooses between them. A
//! changed source policy therefore needs no new load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::bars::Bars;
use crate::event::{
    Action, Decision, Dividend, DividendEvidence, Etf, FormerSymbol, Fundamentals, HoldingSnapshot, Kind,
    MarketSession, Security, Split,
};
use crate::observation::newest_by_key;
use crate::symbol::Symbol;

pub use crate::observation::Observation;

/// Bars of one source, sorted by day, one per day. Bars that the vendor retracted are included.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceBars {
    /// Feed of the bars.
    pub source: String,
    /// Bars of the feed. Derived rows share these bars if the merge changes none of them.
    pub bars: Arc<Bars>,
    /// Calendar years for which only three columns of the bars are loaded: day, close and version. The other columns,
    /// such as volume, are missing in these years.
    pub closes_only: Vec<i32>,
}

/// Source policy: the rank of each source by kind of row and date range. A lower rank is preferred. Sources without a
/// rule come last.
#[derive(Debug, Clone, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourcePolicy {
    /// Rules, in any order.
    pub rules: Vec<PolicyRule>,
}

/// Equality ignores the order of the rules.
impl PartialEq for SourcePolicy {
    fn eq(&self, other: &Self) -> bool {
        let within = |a: &Self, b: &Self| a.rules.iter().all(|rule| b.rules.contains(rule));
        within(self, other) && within(other, self)
    }
}

/// Rule of the source policy: the rank of one feed for a kind of row and a date range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// Kind of the rows that the rule ranks.
    pub kind: Kind,
    /// Feed that the rule ranks.
    pub source: String,
    /// First day of the date range; `None` if the range includes all earlier days.
    pub from: Option<NaiveDate>,
    /// Last day of the date range, included; `None` if the range includes all later days.
    pub to: Option<NaiveDate>,
    /// Rank of the feed. A lower rank is preferred.
    pub rank: i32,
}

/// For each source, the calendar years in which the source has at least one dividend of any security (R38).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DividendFeeds(Arc<BTreeMap<String, BTreeSet<i32>>>);

impl DividendFeeds {
    /// Calendar years in which `source` has a dividend; empty for a source without dividends.
    pub fn years(&self, source: &str) -> impl Iterator<Item = i32> {
        self.0.get(source).into_iter().flatten().copied()
    }

    /// All pairs of a source and a calendar year in which this source has a dividend.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, i32)> {
        self.0.iter().flat_map(|(source, years)| years.iter().map(move |year| (source.as_str(), *year)))
    }
}

impl FromIterator<(String, i32)> for DividendFeeds {
    fn from_iter<T: IntoIterator<Item = (String, i32)>>(pairs: T) -> Self {
        let mut feeds: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
        for (source, year) in pairs {
            feeds.entry(source).or_default().insert(year);
        }
        Self(Arc::new(feeds))
    }
}

/// All facts of one security.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Canonical symbol: the current symbol, or the last one of a delisted security.
    pub symbol: Symbol,
    /// Former symbols with the days of their use.
    pub former_symbols: Vec<FormerSymbol>,
    /// Reference record that the source policy prefers; `None` for a provisional security, which has no reference
    /// record.
    pub security: Option<Observation<Security>>,
    /// Dividends of all sources, all revisions.
    pub dividends: Vec<Observation<Dividend>>,
    /// Splits of all sources, all revisions.
    pub splits: Vec<Observation<Split>>,
    /// Company figures of all sources, all revisions.
    pub fundamentals: Vec<Observation<Fundamentals>>,
    /// Fund reference data of all sources.
    pub etf: Vec<Observation<Etf>>,
    /// Holdings snapshots of all sources.
    pub holdings: Vec<Observation<HoldingSnapshot>>,
    /// Decisions of operators about quarantined rows.
    pub decisions: Vec<Observation<Decision>>,
    /// Evidence of dividends in price files: a dividend column, or adjusted closes that imply a payment.
    pub evidence: Vec<Observation<DividendEvidence>>,
    /// For each source, the calendar years in which the source has a dividend of any security.
    pub dividend_feeds: DividendFeeds,
    /// Bars, one entry per source.
    pub prices: Vec<SourceBars>,
}

/// Date of the newest market session. A session is ignored if its newest version is a retraction.
pub fn newest_session(observations: &[Observation<MarketSession>]) -> Option<NaiveDate> {
    let newest = newest_by_key(observations.iter().map(|session| (session.record.date, session)));
    newest.into_iter().rev().find(|(_, session)| session.action == Action::Put).map(|(date, _)| date)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::event::Action;

    fn session(date: &str, revision: i64, second: i64, retracted: bool) -> Observation<MarketSession> {
        Observation {
            source: "a".into(),
            id: None,
            security_ref: None,
            revision,
            action: if retracted { Action::Retract } else { Action::Put },
            observed_at: DateTime::from_timestamp(second, 0).unwrap(),
            line: 7,
            frame: [0xa5; 16],
            record: MarketSession { date: date.parse().unwrap(), note: None },
        }
    }

    #[test]
    fn the_newest_session_is_the_newest_that_was_not_withdrawn() {
        let newest =
            |sessions: &[Observation<MarketSession>]| newest_session(sessions).map(|day| day.to_string());
        let (monday, tuesday) = (session("2024-06-24", 0, 5, false), session("2024-06-25", 0, 5, false));
        assert_eq!(newest(&[]), None);
        assert_eq!(newest(&[tuesday.clone(), monday.clone()]).as_deref(), Some("2024-06-25"));
        let withdrawn = session("2024-06-25", 0, 6, true);
        assert_eq!(
            newest(&[withdrawn.clone(), tuesday.clone(), monday.clone()]).as_deref(),
            Some("2024-06-24")
        );
        // An older retraction changes nothing. A later revision cancels a retraction.
        let older = session("2024-06-25", 0, 4, true);
        assert_eq!(newest(&[older, tuesday, monday]).as_deref(), Some("2024-06-25"));
        assert_eq!(newest(&[withdrawn, session("2024-06-25", 1, 2, false)]).as_deref(), Some("2024-06-25"));
    }

    #[test]
    fn the_order_of_a_policys_rules_says_nothing() {
        let rule = |rank| PolicyRule { kind: Kind::Price, source: "a".into(), from: None, to: None, rank };
        let policy = |ranks: &[i32]| SourcePolicy { rules: ranks.iter().copied().map(rule).collect() };
        assert_eq!(policy(&[1, 2]), policy(&[2, 1]));
        assert_ne!(policy(&[1, 2]), policy(&[1]));
        assert_ne!(policy(&[1]), policy(&[1, 2]));
    }
}
