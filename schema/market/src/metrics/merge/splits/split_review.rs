//! Review of splits against the price (R36).
//!
//! The review compares two raw closes: the last before the ex-date, and the first on or after it. For example, a split
//! of 2 for 1 should halve the close. The bars must be at most seven days apart. Only ratios of at least 3
//! for 2, in either direction, are reviewed. The effect of a smaller ratio is not visible in a price.
//!
//! The unexplained factor is the second close divided by the expected close. The expected close is the first close,
//! adjusted for the splits and price-only actions between the bars. A factor of 1 means that the splits and price-only
//! actions explain the whole move.
//!
//! The price denies a split if the unexplained factor is too far from 1. This is the case if |ln(factor)| is above
//! 40 percent of |ln(ratio)|. A ratio above e has the same limit as a ratio of e. For example, 40
//! percent of ln(2) is ln(1.32). A split of 2 for 1 is then denied if the factor is above 1.32 or below 0.758.
//!
//! A large payment between the bars also moves the price. An example is a special dividend that is paid together with a
//! share consolidation. If the ratio fits after deduction of the payments, the price does not deny the split.
//!
//! If the price denies a split, the security has the flag `split_not_in_price`. An excluded split is quarantined as
//! `split_denied`. The first case that applies decides what happens to the split:
//! 1. Repetition: another split with the same ratio is at most seven days away. The price moves by the ratio on the
//!    ex-date of that split. The denied split is excluded. If both splits are between the same two bars, the earlier
//!    one is excluded.
//! 2. Early split: the price moves by the ratio in exactly one of the three sessions after the
//!    ex-date. The split becomes effective at that session. If equal splits would become effective at one session, only
//!    one is used, and the others are excluded. It is the first manual or released split, or else the first split.
//! 3. Exclusion: the price moved by less than the ratio. Also, |ln(factor)| is above
//!    80 percent of |ln(ratio)|. Here, a ratio above e is used unchanged. The regular amounts and
//!    the reported share count must not have changed by about the ratio.
//! 4. No other case applies: the split stays unchanged.
//!
//! Repetition and exclusion do not apply to manual records and to splits that a decision released.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::split_type::{has_moved_with, has_share_count_moved};
use super::{MergedSplit, MergedSplits};
use crate::event::ShareBasis;
use crate::history::History;
use crate::metrics::arithmetic::quotient;
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::frequency::is_restart;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::as_of::AsOfView;
use crate::metrics::merge::decisions::DecisionIndex;
use crate::metrics::merge::sources::PreferredWinners;
use crate::metrics::merge::winner::{MergeRecord, ObservationStatus, QuarantinedRow};
use crate::metrics::prices::adjustment::{E, detectable_factor, is_denied};
use crate::metrics::prices::adjustment::{Ratio, SplitEvent};
use crate::metrics::prices::series::{ADJACENT_DAYS, PriceSeries};
use crate::metrics::source_preference::MANUAL;
use crate::row::{Flag, Flags, QuarantineReason};

/// Maximum number of calendar days between two reports of the same split.
pub(crate) const REPEATED_WITHIN: i64 = 7;
/// Share of ln(ratio) above which ln(unexplained factor) denies a split, percent.
const DENIED_SHARE: i64 = 40;
/// Share of ln(ratio) above which a denied split is excluded from the figures, percent.
const EXCLUDED_SHARE: i64 = 80;
/// Number of sessions after a denied ex-date that are searched for a matching price move.
const EARLY_SESSIONS: usize = 3;

/// Facts other than prices that may confirm a split.
pub(crate) struct SplitEvidence<'a> {
    pub history: &'a History,
    pub winners: &'a PreferredWinners,
    pub decided: &'a DecisionIndex<'a>,
    /// Function with the parameters `after` and `through`. It returns the sum of the payments with an ex-date after
    /// `after`, up to and including `through`.
    pub paid: &'a dyn Fn(NaiveDate, NaiveDate) -> Decimal,
    pub known: AsOfView,
}

/// Correction of a contradicted split: the price did not move by its ratio.
enum SplitReview {
    /// The given ex-date is too early. The split becomes effective at this later session. `is_kept` is true for a manual
    /// or released split.
    Early { effective: NaiveDate, is_kept: bool },
    /// The split is excluded; the text is the reason as a sentence.
    Excluded(String),
}

/// Reviews the splits of `series` against the price, and excludes or postpones contradicted splits. Returns true if any
/// split changed.
pub(crate) fn review_splits(
    splits: &mut MergedSplits,
    series: &PriceSeries<'_>,
    evidence: &SplitEvidence<'_>,
    flags: &mut Flags,
) -> bool {
    let mut denied: Vec<&SplitEvent> = series.splits.events().iter().collect();
    denied.retain(|event| {
        detectable_factor(event.ratio).is_some()
            && is_denied_by(series, event.ex_date, Ratio::ONE, evidence) == Some(true)
    });
    if denied.is_empty() {
        return false;
    }
    flags.set(Flag::SplitNotInPrice);
    let mut reviews: Vec<(usize, SplitReview)> = Vec::new();
    for event in denied {
        let live = |split: &&MergedSplit| !split.cancelled && split.ex_date == event.ex_date;
        let Some(split) = splits.splits.iter().find(live) else { continue };
        if let Some(review) = review_split(split, &splits.splits, series, evidence) {
            reviews.push((split.index, review));
        }
    }
    apply(splits, &reviews)
}

fn apply(splits: &mut MergedSplits, reviews: &[(usize, SplitReview)]) -> bool {
    let reason = QuarantineReason::SplitDenied;
    let repeated = repeated_early_splits(&splits.splits, reviews);
    let MergedSplits { splits, statuses, quarantined, .. } = splits;
    let mut exclude = |index: usize, message: String| {
        statuses[index] = ObservationStatus::Quarantined(reason);
        quarantined.push(QuarantinedRow { index, reason, message });
    };
    splits.retain_mut(|split| {
        let found = reviews.iter().find(|(index, _)| *index == split.index && !split.cancelled);
        match found.map(|(_, review)| review) {
            None => true,
            Some(SplitReview::Excluded(message)) => {
                exclude(split.index, message.clone());
                false
            }
            Some(SplitReview::Early { effective, .. }) if repeated.contains(&split.index) => {
                let message = format!("an equal split already explains the price move on {effective}");
                exclude(split.index, message);
                false
            }
            Some(SplitReview::Early { effective, .. }) => {
                split.effective = *effective;
                true
            }
        }
    });
    quarantined.sort_by_key(|row| row.index);
    !reviews.is_empty()
}

/// Indexes of the early splits that are not used, because an equal split becomes effective at the same session.
fn repeated_early_splits(splits: &[MergedSplit], reviews: &[(usize, SplitReview)]) -> BTreeSet<usize> {
    let early = splits.iter().filter(|split| !split.cancelled).filter_map(|split| {
        reviews.iter().find_map(|(index, review)| match review {
            SplitReview::Early { effective, is_kept } if *index == split.index => {
                Some((!is_kept, *effective, split))
            }
            _ => None,
        })
    });
    let mut early: Vec<(bool, NaiveDate, &MergedSplit)> = early.collect();
    early.sort_by_key(|(is_excludable, ..)| *is_excludable);
    let is_repeated = |place: usize| {
        let (_, day, split) = early[place];
        early[..place].iter().any(|(_, used, other)| *used == day && is_equal(other.ratio, split.ratio))
    };
    (0..early.len()).filter(|place| is_repeated(*place)).map(|place| early[place].2.index).collect()
}

fn review_split(
    split: &MergedSplit,
    splits: &[MergedSplit],
    series: &PriceSeries<'_>,
    evidence: &SplitEvidence<'_>,
) -> Option<SplitReview> {
    let observation = &evidence.history.splits[split.index];
    let is_kept = observation.source == MANUAL || evidence.decided.releases_split(observation);
    match repeated_ex_date(split, splits, series, evidence) {
        // The price moves at the ex-date of `split`, so `split` stays unchanged. The equal split on the other day is
        // the repetition.
        Some(shown) if shown == split.ex_date => return None,
        Some(shown) if !is_kept => {
            let message =
                format!("the price moves for an equal split on {shown}, but not on {}", split.ex_date);
            return Some(SplitReview::Excluded(message));
        }
        _ => {}
    }
    if let Some(effective) = early_session(split, series) {
        return Some(SplitReview::Early { effective, is_kept });
    }
    let (before, after) = bars_around(series, split.ex_date)?;
    // A split is excluded only if the price moved by less than the ratio.
    let fell_short = |rest: Decimal| {
        (rest > Decimal::ONE) == (split.ratio.from < split.ratio.to)
            && is_denied(rest, split.ratio, EXCLUDED_SHARE, Decimal::MAX)
    };
    let is_excluded = !is_kept
        && all_rests(series, (before, after), Ratio::ONE, evidence, fell_short)?
        && !has_amount_moved(split, evidence)
        && !has_share_count_moved(evidence.history, split, &evidence.known);
    is_excluded.then(|| {
        SplitReview::Excluded(format!(
            "the close was {} before and {} on the ex-date, so the price denies a split of {} for {}",
            series.close(before),
            series.close(after),
            split.ratio.to.normalize(),
            split.ratio.from.normalize()
        ))
    })
}

/// Ex-date that the price confirms, if `split` and an equal split near it are one event; else `None`.
fn repeated_ex_date(
    split: &MergedSplit,
    splits: &[MergedSplit],
    series: &PriceSeries<'_>,
    evidence: &SplitEvidence<'_>,
) -> Option<NaiveDate> {
    let others = splits.iter().filter(|other| {
        !other.cancelled
            && other.index != split.index
            && (other.ex_date - split.ex_date).num_days().abs() <= REPEATED_WITHIN
            && is_equal(other.ratio, split.ratio)
    });
    let own = bars_around(series, split.ex_date);
    let mut shown = others.filter_map(|other| {
        // Between the same two bars, the price confirms both ex-dates. The later one is used.
        let (removed, shown) = if own == bars_around(series, other.ex_date) {
            (split.ratio, split.ex_date.max(other.ex_date))
        } else {
            (Ratio::ONE, other.ex_date)
        };
        (is_denied_by(series, other.ex_date, removed, evidence) == Some(false)).then_some(shown)
    });
    shown.next()
}

/// The session after the ex-date at which the price moves by the ratio of the split. Only the next
/// [`EARLY_SESSIONS`] sessions are searched. `None` if no session or several sessions match.
fn early_session(split: &MergedSplit, series: &PriceSeries<'_>) -> Option<NaiveDate> {
    let first = series.at_or_after(split.ex_date)?;
    let last = (first + EARLY_SESSIONS).min(series.bars.len().checked_sub(1)?);
    let mut matching = (first + 1..=last).filter(|index| {
        let is_adjacent = series.bars.day[*index] - series.bars.day[index - 1] <= ADJACENT_DAYS;
        // The ex-date of the split is not between these bars, so the expected close does not include its ratio.
        // Removing the inverse ratio has the same effect as adding the ratio.
        let rest = unexplained_factor(series, index - 1, *index, split.ratio.inverse());
        is_adjacent && rest.is_some_and(|rest| !is_denied(rest, split.ratio, DENIED_SHARE, E))
    });
    let only = matching.next().filter(|_| matching.next().is_none());
    only.map(|index| series.date(index))
}

/// True if the price did not move by the splits of an ex-date. `None` if the bars around the ex-date are not adjacent.
/// `removed` is the ratio of a split to ignore, or [`Ratio::ONE`].
fn is_denied_by(
    series: &PriceSeries<'_>,
    ex_date: NaiveDate,
    removed: Ratio,
    evidence: &SplitEvidence<'_>,
) -> Option<bool> {
    let (before, after) = bars_around(series, ex_date)?;
    let between = series.splits.price_ratio_between(series.date(before), series.date(after));
    let ratio = between.then(removed.inverse());
    let is_denied = |rest| is_denied(rest, ratio, DENIED_SHARE, E);
    all_rests(series, (before, after), removed, evidence, is_denied)
}

/// True if [`unexplained_factor`] satisfies `condition`, both with and without the payments between the bars. `None` if
/// the factor cannot be computed.
fn all_rests(
    series: &PriceSeries<'_>,
    (before, after): (usize, usize),
    removed: Ratio,
    evidence: &SplitEvidence<'_>,
    condition: impl Fn(Decimal) -> bool,
) -> Option<bool> {
    let rest = unexplained_factor(series, before, after, removed)?;
    let paid = (evidence.paid)(series.date(before), series.date(after));
    let expected = expected_close(series, before, after, removed) - paid;
    let after_payments = (paid > Decimal::ZERO && expected > Decimal::ZERO)
        .then(|| quotient(series.close(after), expected))
        .flatten();
    Some(condition(rest) && after_payments.is_none_or(condition))
}

/// Indexes of the last bar before an ex-date and the first bar on or after it. `None` if they are missing or more than
/// [`ADJACENT_DAYS`] apart.
fn bars_around(series: &PriceSeries<'_>, ex_date: NaiveDate) -> Option<(usize, usize)> {
    let (before, after) = series.before(ex_date).zip(series.at_or_after(ex_date))?;
    let apart = series.bars.day[after] - series.bars.day[before];
    (apart <= ADJACENT_DAYS).then_some((before, after))
}

/// Part of a price move that the splits do not explain: the close at `after` divided by [`expected_close`].
fn unexplained_factor(
    series: &PriceSeries<'_>,
    before: usize,
    after: usize,
    removed: Ratio,
) -> Option<Decimal> {
    quotient(series.close(after), expected_close(series, before, after, removed))
}

/// Expected close of the bar at `after`: the close at `before`, adjusted for the splits between both bars. `removed` is
/// the ratio of a split to leave out, or [`Ratio::ONE`] to leave out nothing.
fn expected_close(series: &PriceSeries<'_>, before: usize, after: usize, removed: Ratio) -> Decimal {
    let between = series.splits.price_ratio_between(series.date(before), series.date(after));
    between.then(removed.inverse()).apply(series.close(before))
}

fn is_equal(a: Ratio, b: Ratio) -> bool {
    a.then(b.inverse()).is_one()
}

/// True if the regular amount per share changed by about the ratio at the split. Split-adjusted amounts are ignored.
fn has_amount_moved(split: &MergedSplit, evidence: &SplitEvidence<'_>) -> bool {
    let live = evidence.winners.winners.iter().filter(|winner| !winner.cancelled);
    let rows = live.filter_map(|winner| {
        let record = &evidence.history.dividends[winner.index].record;
        let date = record.date(Settlement::of_history(evidence.history))?;
        let counts = record.r#type.class(record.frequency) == DividendClass::Regular
            && record.amount_basis == ShareBasis::Raw
            && date <= evidence.known.as_of
            && !is_restart(date.min(split.ex_date), date.max(split.ex_date));
        counts.then_some((date, record.amount))
    });
    let before = rows.clone().filter(|row| row.0 < split.ex_date).max();
    let after = rows.filter(|row| row.0 >= split.ex_date).min();
    let step = before.zip(after).and_then(|(before, after)| quotient(after.1, before.1));
    step.is_some_and(|step| has_moved_with(step, split.ratio.factor()))
}
