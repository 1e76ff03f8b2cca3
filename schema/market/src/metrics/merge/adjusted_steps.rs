//! Steps of a feed's adjusted closes, which are evidence of the feed's own dividends (R40).
//!
//! A step is the factor by which a feed adjusts its prices before a session. Without the splits of the session, a step
//! is 1 - ΣD / C of the feed's own dividends. Steps confirm or contradict payments. They never add a payment.
//!
//! Of several versions of a step, the newest version of each source counts.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{Action, Evidence, ShareBasis};
use crate::metrics::arithmetic::percent_to_fraction;
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::rules::AbsenceRules;
use crate::observation::Observation;

/// Step of a source's adjusted closes, without splits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AdjustedStep<'a> {
    pub observation: &'a Observation<Evidence>,
    /// Last session of the file before the step.
    pub previous: NaiveDate,
    /// First session after the step.
    pub ex_date: NaiveDate,
    /// Multiplier of earlier prices, splits excluded.
    pub factor: Decimal,
}

impl AdjustedStep<'_> {
    /// True if an ex-date lies in the step: after its last session before, and not after its first session.
    pub(crate) fn contains(&self, ex_date: NaiveDate) -> bool {
        self.previous < ex_date && ex_date <= self.ex_date
    }
}

/// True if two dividend factors are so close that they come from the same payment.
pub(crate) fn agrees(a: Decimal, b: Decimal, rules: &AbsenceRules) -> bool {
    (a - b).abs() <= percent_to_fraction(rules.agreement)
}

/// Steps of all sources, sorted by session and source.
#[derive(Debug, Default)]
pub(crate) struct AdjustedSteps<'a>(Vec<AdjustedStep<'a>>);

impl<'a> AdjustedSteps<'a> {
    /// Collects the steps up to a day.
    pub(crate) fn collect(evidence: &'a [Observation<Evidence>], splits: &Splits, as_of: NaiveDate) -> Self {
        let mut newest: BTreeMap<(NaiveDate, &str), &Observation<Evidence>> = BTreeMap::new();
        for row in evidence {
            let Some(ex_date) = row.record.ex_date.filter(|ex_date| *ex_date <= as_of) else { continue };
            let known = newest.entry((ex_date, row.source.as_str())).or_insert(row);
            if known.version(0) < row.version(0) {
                *known = row;
            }
        }
        let put = newest.into_iter().filter(|(_, row)| row.action == Action::Put);
        let step = |((ex_date, _), row): ((NaiveDate, &str), &'a Observation<Evidence>)| {
            let (previous, factor) = row.record.previous.zip(row.record.factor)?;
            let factor = match row.record.basis {
                Some(ShareBasis::Raw) => {
                    splits.share_ratio_between(previous, ex_date).inverse().apply(factor)
                }
                _ => factor,
            };
            Some(AdjustedStep { observation: row, previous, ex_date, factor })
        };
        Self(put.filter_map(step).collect())
    }

    /// All steps.
    pub(crate) fn steps(&self) -> &[AdjustedStep<'a>] {
        &self.0
    }

    /// Dividend factor by which a feed adjusts its prices before an ex-date. `None` if no feed has a step there. Of
    /// several sources with a step, the newest observation is used.
    pub(crate) fn factor(&self, ex_date: NaiveDate) -> Option<Decimal> {
        let from = self.0.partition_point(|step| step.ex_date < ex_date);
        let around = self.0[from..].iter().take_while(|step| step.ex_date == self.0[from].ex_date);
        let around = around.filter(|step| step.contains(ex_date));
        around.max_by_key(|step| step.observation.version(0)).map(|step| step.factor)
    }
}
