//! Merge of all observations of splits to the valid splits (R29, R32).
//!
//! Two records with different ids and the same ex-date are one split. If their ratios are equal, the record with more
//! known dates (declaration date, payable date) is used. If their ratios differ, the newer record is used, and the
//! security has the flag `conflicting_duplicate`.
//!
//! A stock dividend is also a split: 1 share becomes 1 + amount shares. It is left out if a split has the same ex-date.
//! A price-only action (R35), such as a spin-off, is in the split table too, but it changes only prices, not share
//! counts.

pub(crate) mod split_review;
pub(crate) mod split_type;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::as_of::AsOfView;
use super::sources::{PreferredWinners, SourceChoice, preferred_winners};
use super::winner::{MergeRecord, ObservationStatus, QuarantinedRow, WinningVersion, version_time};
use crate::event::Split;
use crate::history::{History, Observation};
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::prices::adjustment::{Ratio, SplitEvent, Splits};
use crate::row::{Flag, Flags, SplitType};

/// Valid version of a split, chosen from all its observations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergedSplit {
    /// Index of the observation in the splits of the history.
    pub index: usize,
    /// Index of the observation from which the id of the split is built.
    pub named: usize,
    pub ex_date: NaiveDate,
    /// Session at which the price moves. It is the ex-date, or a later session if the price moves later than the given
    /// ex-date (R36).
    pub effective: NaiveDate,
    pub ratio: Ratio,
    /// Type of the split. The merge first treats every split as a change of the share count. Then
    /// [`classify`](split_type::classify) sets the type of price-only actions.
    pub r#type: SplitType,
    pub cancelled: bool,
}

impl MergedSplit {
    pub(crate) fn event(&self) -> SplitEvent {
        SplitEvent { ex_date: self.effective, ratio: self.ratio, is_price_only: self.r#type.is_price_only() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct MergedSplits {
    /// Splits, sorted by ex-date. Withdrawn splits are included.
    pub splits: Vec<MergedSplit>,
    pub statuses: Vec<ObservationStatus>,
    pub quarantined: Vec<QuarantinedRow>,
    /// For each date range in which a rank outranks other sources, the indexes of its valid records.
    pub ranked: Vec<Vec<usize>>,
}

pub(crate) fn merge_splits(history: &History, choice: &SourceChoice<'_>, flags: &mut Flags) -> MergedSplits {
    let observations = &history.splits;
    if observations.is_empty() {
        return MergedSplits::default();
    }
    let found = preferred_winners(observations, choice);
    let PreferredWinners { winners: kept, mut statuses, quarantined, ranked } = found;
    let live = one_per_date(observations, &kept, &mut statuses, flags);
    let cancelled = kept.iter().copied().filter(|winner| winner.cancelled);
    let all = live.into_iter().chain(cancelled);
    let mut splits: Vec<MergedSplit> = all.map(|winner| merged_split(observations, winner)).collect();
    splits.sort_by(|a, b| {
        let key = |split: &MergedSplit| (split.ex_date, split.cancelled);
        key(a).cmp(&key(b)).then_with(|| observations[a.index].id.cmp(&observations[b.index].id))
    });
    MergedSplits { splits, statuses, quarantined, ranked }
}

/// Split of a winning version, not yet classified.
pub(crate) fn merged_split(observations: &[Observation<Split>], winner: WinningVersion) -> MergedSplit {
    let record = &observations[winner.index].record;
    let ratio = Ratio { from: record.from, to: record.to };
    MergedSplit {
        index: winner.index,
        named: winner.named,
        ex_date: record.ex_date,
        effective: record.ex_date,
        ratio,
        r#type: share_type(ratio, record.r#type.as_deref()),
        cancelled: winner.cancelled,
    }
}

/// One version for each ex-date. Withdrawn splits are left out.
pub(crate) fn one_per_date(
    observations: &[Observation<Split>],
    kept: &[WinningVersion],
    statuses: &mut [ObservationStatus],
    flags: &mut Flags,
) -> Vec<WinningVersion> {
    let mut live: Vec<WinningVersion> = kept.iter().copied().filter(|winner| !winner.cancelled).collect();
    live.sort_by(|a, b| {
        let (a, b) = (&observations[a.index], &observations[b.index]);
        a.record
            .ex_date
            .cmp(&b.record.ex_date)
            .then_with(|| version_time(a).cmp(&version_time(b)))
            .then_with(|| a.id.cmp(&b.id))
    });
    let mut chosen = Vec::new();
    for same_day in
        live.chunk_by(|a, b| observations[a.index].record.ex_date == observations[b.index].record.ex_date)
    {
        let Some(latest) = same_day.last() else { continue };
        let record = |winner: &WinningVersion| &observations[winner.index].record;
        let differs = |winner: &WinningVersion| !record(winner).same_content(record(latest));
        flags.set_if(Flag::ConflictingDuplicate, latest.conflict || same_day.iter().any(differs));
        let is_collapsed = same_day.len() > 1 || same_day.iter().any(|winner| winner.collapsed);
        flags.set_if(Flag::DuplicateCollapsed, latest.conflict || is_collapsed);
        let best = same_day
            .iter()
            .filter(|winner| !differs(winner))
            .max_by_key(|winner| record(winner).preference(Settlement::UnitedStates));
        let best = *best.unwrap_or(latest);
        same_day
            .iter()
            .filter(|winner| winner.index != best.index)
            .for_each(|winner| statuses[winner.index] = ObservationStatus::Duplicate(best.index));
        chosen.push(best);
    }
    chosen
}

/// Split table of the splits that are visible on the as-of date (see [`is_known`]), and of the stock dividends.
pub(crate) fn table_of_known(
    observations: &[Observation<Split>],
    splits: &[MergedSplit],
    stock_dividends: &[(NaiveDate, Decimal)],
    known: &AsOfView,
) -> Splits {
    let known =
        splits.iter().filter(|split| !split.cancelled && is_known(&observations[split.index].record, known));
    table(known.map(MergedSplit::event), stock_dividends)
}

/// True if a split is visible on the as-of date: it is effective or announced by then. For a future split without a
/// declaration date, see [`AsOfView`].
pub(crate) fn is_known(split: &Split, known: &AsOfView) -> bool {
    known.is_visible(split.declaration_date, split.ex_date)
}

/// Split table of splits and stock dividends. A stock dividend is left out if a split has its ex-date.
pub(crate) fn table(
    splits: impl Iterator<Item = SplitEvent>,
    stock_dividends: &[(NaiveDate, Decimal)],
) -> Splits {
    let mut events: Vec<SplitEvent> = splits.collect();
    for (ex_date, shares) in stock_dividends {
        if events.iter().all(|event| event.ex_date != *ex_date) {
            events.push(SplitEvent::of_shares(*ex_date, stock_dividend_ratio(*shares)));
        }
    }
    Splits::new(events)
}

/// Split ratio of a stock dividend of `shares` new shares per old share. For example, 0.05 is 100 to 105.
pub(crate) fn stock_dividend_ratio(shares: Decimal) -> Ratio {
    Ratio { from: Decimal::ONE, to: Decimal::ONE + shares }
}

/// Type of a split that changes the share count. `word` is the type from the vendor. An increase of less than 25 % is a
/// stock dividend.
pub(crate) fn share_type(ratio: Ratio, word: Option<&str>) -> SplitType {
    let quarter_more = ratio.from.saturating_mul(Decimal::new(125, 2));
    let is_declared = || word.and_then(|word| word.parse().ok()) == Some(SplitType::StockDividend);
    if ratio.to < ratio.from {
        SplitType::Reverse
    } else if ratio.to < quarter_more || is_declared() {
        SplitType::StockDividend
    } else {
        SplitType::Forward
    }
}
