//! Dividend factors that a feed's adjusted closes imply, as evidence of the feed's dividends (R40).
//!
//! A feed adjusts its closes: it multiplies the closes before an ex-date by a factor. Without the effect of splits,
//! this factor ([`ImpliedFactor`]) is 1 - ΣD / C. ΣD is the sum of the feed's dividends on the ex-date, and C is the
//! close before the ex-date. Implied factors confirm or contradict payments. They never add a payment.
//!
//! If a source has several versions of an implied factor, the newest version is used.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{Action, DividendEvidence, ShareBasis};
use crate::metrics::arithmetic::percent_to_fraction;
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::rules::AbsenceRules;
use crate::observation::{Observation, newest_by_key};

/// Dividend factor that a source's adjusted closes imply between two sessions, without splits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ImpliedFactor<'a> {
    pub observation: &'a Observation<DividendEvidence>,
    /// Last session in the feed's file whose close the feed adjusts by the factor.
    pub previous: NaiveDate,
    /// First session in the feed's file whose close the feed does not adjust by the factor.
    pub ex_date: NaiveDate,
    /// Multiplier of prices before `ex_date`, without splits.
    pub factor: Decimal,
}

impl ImpliedFactor<'_> {
    /// True if the factor may belong to an ex-date: after `previous`, up to and including `self.ex_date`.
    pub(crate) fn contains(&self, ex_date: NaiveDate) -> bool {
        self.previous < ex_date && ex_date <= self.ex_date
    }
}

/// True if two dividend factors are so close that they come from the same payment.
pub(crate) fn agrees(a: Decimal, b: Decimal, rules: &AbsenceRules) -> bool {
    (a - b).abs() <= percent_to_fraction(rules.agreement)
}

/// Implied factors of all sources, sorted by session and source.
#[derive(Debug, Default)]
pub(crate) struct ImpliedFactors<'a>(pub Vec<ImpliedFactor<'a>>);

impl<'a> ImpliedFactors<'a> {
    /// Collects the implied factors with an ex-date up to `as_of`.
    pub(crate) fn collect(
        evidence: &'a [Observation<DividendEvidence>],
        splits: &Splits,
        as_of: NaiveDate,
    ) -> Self {
        let dated = evidence.iter().filter_map(|row| Some(((row.record.ex_date?, row.source.as_str()), row)));
        let newest = newest_by_key(dated.filter(|((ex_date, _), _)| *ex_date <= as_of));
        let put = newest.into_iter().filter(|(_, row)| row.action == Action::Put);
        let implied = |((ex_date, _), row): ((NaiveDate, &str), &'a Observation<DividendEvidence>)| {
            let (previous, factor) = row.record.previous.zip(row.record.factor)?;
            let factor = match row.record.basis {
                Some(ShareBasis::Raw) => {
                    splits.share_ratio_between(previous, ex_date).inverse().apply(factor)
                }
                _ => factor,
            };
            Some(ImpliedFactor { observation: row, previous, ex_date, factor })
        };
        Self(put.filter_map(implied).collect())
    }

    /// Dividend factor that a feed's adjusted closes imply for an ex-date; `None` if no feed implies a factor. If
    /// several feeds imply a factor, the one with the newest observation is used.
    pub(crate) fn factor(&self, ex_date: NaiveDate) -> Option<Decimal> {
        let from = self.0.partition_point(|implied| implied.ex_date < ex_date);
        let around = self.0[from..].iter().take_while(|implied| implied.ex_date == self.0[from].ex_date);
        let around = around.filter(|implied| implied.contains(ex_date));
        around.max_by_key(|implied| implied.observation.version(0)).map(|implied| implied.factor)
    }
}
