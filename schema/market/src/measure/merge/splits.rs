//! The splits that count, from every observation of them (R29, R32).
//!
//! Two ids on one ex-date are one split: of equal ratios the better dated record stays, of different ones the later,
//! flagged `conflicting_duplicate`. A stock dividend record is a split of 1 to 1 + amount unless a split has its date.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::beside::Beside;
use super::known::Known;
use super::sources::{believed, withdraw_by_manual};
use super::version::{Fate, Held, HeldSymbols, Keyed, SameContent, Winner, moment, winners};
use crate::event::{Kind, Split};
use crate::history::{History, Observation, SourcePolicy};
use crate::measure::adjust::{Ratio, SplitEvent, Splits};
use crate::row::{Flag, Flags};

/// A split record that won its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CleanSplit {
    /// Position in the history's splits.
    pub index: usize,
    /// Position of the version that its id is made of.
    pub named: usize,
    pub ex_date: NaiveDate,
    pub ratio: Ratio,
    pub cancelled: bool,
}

/// The outcome of merging splits.
#[derive(Debug, Default)]
pub(crate) struct MergedSplits {
    /// By ex-date; withdrawn ones included.
    pub splits: Vec<CleanSplit>,
    pub fates: Vec<Fate>,
    pub held: Vec<Held>,
}

/// Merges the splits of a security.
pub(crate) fn merge_splits(
    history: &History,
    policy: &SourcePolicy,
    symbols: HeldSymbols<'_>,
    flags: &mut Flags,
) -> MergedSplits {
    let observations = &history.splits;
    let mut merged = MergedSplits { fates: vec![Fate::Used; observations.len()], ..MergedSplits::default() };
    if observations.is_empty() {
        return merged;
    }
    let beside = Beside::default();
    let winners = winners(observations, symbols, &beside, &mut merged.fates, &mut merged.held);
    let mut kept = believed(observations, winners, Kind::Split, policy, &beside, &mut merged.fates);
    withdraw_by_manual(observations, &mut kept, &beside, &mut merged.fates);
    let live = one_per_date(observations, &kept, &mut merged.fates, flags);
    let cancelled = kept.iter().copied().filter(|winner| winner.cancelled);
    let clean = |winner: Winner| {
        let record = &observations[winner.index].record;
        CleanSplit {
            index: winner.index,
            named: winner.named,
            ex_date: record.ex_date,
            ratio: Ratio { from: record.from, to: record.to },
            cancelled: winner.cancelled,
        }
    };
    merged.splits = live.into_iter().chain(cancelled).map(clean).collect();
    merged.splits.sort_by(|a, b| {
        let key = |split: &CleanSplit| (split.ex_date, split.cancelled);
        key(a).cmp(&key(b)).then_with(|| observations[a.index].id.cmp(&observations[b.index].id))
    });
    merged
}

fn one_per_date(
    observations: &[Observation<Split>],
    kept: &[Winner],
    fates: &mut [Fate],
    flags: &mut Flags,
) -> Vec<Winner> {
    let mut live: Vec<Winner> = kept.iter().copied().filter(|winner| !winner.cancelled).collect();
    live.sort_by(|a, b| {
        let (a, b) = (&observations[a.index], &observations[b.index]);
        a.record
            .ex_date
            .cmp(&b.record.ex_date)
            .then_with(|| moment(a).cmp(&moment(b)))
            .then_with(|| a.id.cmp(&b.id))
    });
    let mut chosen = Vec::new();
    for same_day in
        live.chunk_by(|a, b| observations[a.index].record.ex_date == observations[b.index].record.ex_date)
    {
        let Some(latest) = same_day.last() else { continue };
        let record = |winner: &Winner| &observations[winner.index].record;
        let differs = |winner: &Winner| !record(winner).same_content(record(latest));
        if latest.conflict || same_day.iter().any(differs) {
            flags.set(Flag::ConflictingDuplicate);
        }
        if latest.conflict || same_day.len() > 1 {
            flags.set(Flag::DuplicateCollapsed);
        }
        let best = same_day
            .iter()
            .filter(|winner| !differs(winner))
            .max_by_key(|winner| record(winner).preference());
        let best = *best.unwrap_or(latest);
        same_day
            .iter()
            .filter(|winner| winner.index != best.index)
            .for_each(|winner| fates[winner.index] = Fate::Duplicate(best.index));
        chosen.push(best);
    }
    chosen
}

/// Every live split and stock dividend, whenever it was announced: what vendors' adjusted figures are on.
pub(crate) fn table_of_all(splits: &[CleanSplit], stock_dividends: &[(NaiveDate, Decimal)]) -> Splits {
    table(
        splits
            .iter()
            .filter(|split| !split.cancelled)
            .map(|split| SplitEvent { ex_date: split.ex_date, ratio: split.ratio }),
        stock_dividends,
    )
}

/// The live splits known: those effective or announced.
pub(crate) fn table_of_known(
    observations: &[Observation<Split>],
    splits: &[CleanSplit],
    stock_dividends: &[(NaiveDate, Decimal)],
    known: &Known,
) -> Splits {
    let known =
        splits.iter().filter(|split| !split.cancelled && is_known(&observations[split.index].record, known));
    table(known.map(|split| SplitEvent { ex_date: split.ex_date, ratio: split.ratio }), stock_dividends)
}

/// Whether a split had happened or been announced.
pub(crate) fn is_known(split: &Split, known: &Known) -> bool {
    split.ex_date <= known.as_of() || known.has(split.declaration_date, split.ex_date)
}

fn table(splits: impl Iterator<Item = SplitEvent>, stock_dividends: &[(NaiveDate, Decimal)]) -> Splits {
    let mut events: Vec<SplitEvent> = splits.collect();
    for (ex_date, shares) in stock_dividends {
        if events.iter().all(|event| event.ex_date != *ex_date) {
            events.push(SplitEvent { ex_date: *ex_date, ratio: stock_dividend_ratio(*shares) });
        }
    }
    Splits::new(events)
}

/// New shares per old share as a split: 0.05 is 100 to 105.
pub(crate) fn stock_dividend_ratio(shares: Decimal) -> Ratio {
    Ratio { from: Decimal::ONE, to: Decimal::ONE + shares }
}
