//! Dividend factors that a feed's adjusted closes imply, as evidence of dividends (R40).
//!
//! To adjust for a dividend, a feed multiplies all closes before the ex-date by a factor. Without the effect of splits,
//! this factor is 1 - ΣD / C. ΣD is the sum of the feed's dividends on the ex-date, and C is the close before the
//! ex-date. An [`ImpliedFactor`] is such a factor, computed from the closes of the feed. It can confirm or contradict a
//! payment in the data. It never adds a payment.
//!
//! If a source has several versions of an implied factor, the newest version is used.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::feed_adjustments::FeedAdjustments;
use crate::event::{Action, DividendEvidence, ShareBasis};
use crate::metrics::arithmetic::exact;
use crate::observation::{Observation, newest_by_key};

/// Maximum difference of two dividend factors that agree.
const TOLERANCE: Decimal = exact("0.0005");

/// Dividend factor that follows from the adjusted closes of two consecutive sessions in a feed's file. The effect of
/// splits is removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ImpliedFactor<'a> {
    pub observation: &'a Observation<DividendEvidence>,
    /// Session of the feed's last close before the ex-date. `factor` applies to this close.
    pub previous: NaiveDate,
    /// Session of the feed's first close on or after the ex-date. `factor` does not apply to this close.
    pub ex_date: NaiveDate,
    /// Multiplier of the closes before `ex_date`, without the effect of splits.
    pub factor: Decimal,
}

impl ImpliedFactor<'_> {
    /// True if a payment with this ex-date can be the cause of the factor.
    pub(crate) fn contains(&self, ex_date: NaiveDate) -> bool {
        self.previous < ex_date && ex_date <= self.ex_date
    }
}

/// True if two dividend factors are so near that they are assumed to come from the same payment.
pub(crate) fn agrees(a: Decimal, b: Decimal) -> bool {
    (a - b).abs() <= TOLERANCE
}

/// Implied factors of all sources, sorted by ex-date and source.
#[derive(Debug, Default)]
pub(crate) struct ImpliedFactors<'a>(pub Vec<ImpliedFactor<'a>>);

impl<'a> ImpliedFactors<'a> {
    /// Collects the implied factors with an ex-date up to `as_of`, without the effect of splits. A feed with raw closes
    /// adjusts its adjusted closes for each split that it lists, and for spin-offs and other price-only actions among
    /// them.
    pub(crate) fn collect(
        evidence: &'a [Observation<DividendEvidence>],
        feeds: &FeedAdjustments<'_>,
        as_of: NaiveDate,
    ) -> Self {
        let dated = evidence.iter().filter_map(|row| Some(((row.record.ex_date?, row.source.as_str()), row)));
        let newest = newest_by_key(dated.filter(|((ex_date, _), _)| *ex_date <= as_of));
        let put = newest.into_iter().filter(|(_, row)| row.action == Action::Put);
        let implied = |((ex_date, _), row): ((NaiveDate, &str), &'a Observation<DividendEvidence>)| {
            let (previous, factor) = row.record.previous.zip(row.record.factor)?;
            let factor = match row.record.basis {
                Some(ShareBasis::Raw) => {
                    let splits = &feeds.of_source(&row.source).splits;
                    splits.price_ratio_between(previous, ex_date).inverse().apply(factor)
                }
                _ => factor,
            };
            Some(ImpliedFactor { observation: row, previous, ex_date, factor })
        };
        Self(put.filter_map(implied).collect())
    }

    /// Implied dividend factor for an ex-date; `None` if no feed implies one. If several feeds imply one, the factor
    /// with the newest observation is used.
    pub(crate) fn factor(&self, ex_date: NaiveDate) -> Option<Decimal> {
        let from = self.0.partition_point(|implied| implied.ex_date < ex_date);
        let around = self.0[from..].iter().take_while(|implied| implied.ex_date == self.0[from].ex_date);
        let around = around.filter(|implied| implied.contains(ex_date));
        around.max_by_key(|implied| implied.observation.version(0)).map(|implied| implied.factor)
    }
}
