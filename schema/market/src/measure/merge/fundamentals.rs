//! The company figures that hold on a date, from every observation of them (R32).
//!
//! The newest record whose `as_of` is not after the as-of date wins whole; of equal dates the preferred source. A figure
//! it lacks comes from the newest earlier record of the same source that has it, with that record's own date as its
//! share basis. Manual records then override the figures they give, unless they are older than the winner.

use std::cmp::Reverse;

use chrono::NaiveDate;

use super::sources::newest_observations;
use crate::event::{Action, Fundamentals, Kind};
use crate::history::{Observation, SourcePolicy};
use crate::measure::policy::{Candidate, MANUAL, preference};

/// Figures with the day whose share basis per-share figures are on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MergedFundamentals {
    /// `eps_as_of` and `shares_as_of` are always set when their figure is.
    pub figures: Fundamentals,
    /// Share basis of `book_value_per_share`.
    pub book_value_as_of: NaiveDate,
    /// Share basis of `ffo_per_share_ttm`.
    pub ffo_as_of: NaiveDate,
    /// Share basis of `float_shares`.
    pub float_as_of: NaiveDate,
    /// Positions of the records used, the winner first.
    pub used: Vec<usize>,
}

/// The figures that hold on `as_of`; `None` when nothing was reported by then.
pub(crate) fn merge_fundamentals(
    observations: &[Observation<Fundamentals>],
    policy: &SourcePolicy,
    as_of: NaiveDate,
) -> Option<MergedFundamentals> {
    let live: Vec<usize> =
        newest_per_key(observations).into_iter().filter(|i| observations[*i].record.as_of <= as_of).collect();
    let newest = newest_observations(observations);
    let order = |index: &usize| {
        let observation = &observations[*index];
        let candidate =
            Candidate { source: &observation.source, observed_at: newest[observation.source.as_str()] };
        (
            Reverse(observation.record.as_of),
            preference(policy, Kind::Fundamentals, candidate, observation.record.as_of),
        )
    };
    let is_manual = |index: &usize| observations[*index].source == MANUAL;
    let first = live.iter().copied().filter(|index| !is_manual(index)).min_by_key(order);
    let mut chain: Vec<usize> = match first {
        Some(first) => live
            .iter()
            .copied()
            .filter(|index| observations[*index].source == observations[first].source)
            .collect(),
        None => Vec::new(),
    };
    chain.sort_by_key(|index| Reverse(observations[*index].record.as_of));
    let since = first.map_or(NaiveDate::MIN, |first| observations[first].record.as_of);
    let manual =
        live.iter().copied().filter(|index| is_manual(index) && observations[*index].record.as_of >= since);
    let manual = manual.max_by_key(|index| observations[*index].record.as_of);
    let used: Vec<usize> = manual.into_iter().chain(chain).collect();
    let (head, rest) = used.split_first()?;
    let mut merged = dated(&observations[*head].record);
    rest.iter().for_each(|index| fill(&mut merged, &observations[*index].record));
    merged.used = used;
    Some(merged)
}

/// The greatest version per source and key; withdrawn ones left out.
fn newest_per_key(observations: &[Observation<Fundamentals>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..observations.len()).collect();
    let key = |index: &usize| {
        let o = &observations[*index];
        (o.source.as_str(), o.id.as_deref(), o.record.as_of)
    };
    let same = |a: &usize, b: &usize| {
        let ((source_a, id_a, day_a), (source_b, id_b, day_b)) = (key(a), key(b));
        source_a == source_b && id_a == id_b && (id_a.is_some() || day_a == day_b)
    };
    let version = |index: &usize| {
        let row = &observations[*index];
        row.version(u32::from(row.id.is_some() && row.action == Action::Retract))
    };
    let grouped = |index: &usize| {
        let (source, id, day) = key(index);
        (source, id, if id.is_some() { None } else { Some(day) })
    };
    order.sort_by(|a, b| grouped(a).cmp(&grouped(b)).then_with(|| version(a).cmp(&version(b))));
    let winners = order.chunk_by(same).filter_map(|versions| versions.last().copied());
    // Two ids of one source for one day: the greater version.
    let mut live: Vec<usize> = winners.filter(|index| observations[*index].action == Action::Put).collect();
    let day = |index: &usize| (observations[*index].source.as_str(), observations[*index].record.as_of);
    live.sort_by(|a, b| day(a).cmp(&day(b)).then_with(|| version(a).cmp(&version(b))));
    live.chunk_by(|a, b| day(a) == day(b)).filter_map(|same_day| same_day.last().copied()).collect()
}

fn dated(record: &Fundamentals) -> MergedFundamentals {
    let as_of = record.as_of;
    let mut figures = record.clone();
    figures.eps_as_of = record.eps_ttm.map(|_| record.eps_as_of.unwrap_or(as_of));
    figures.shares_as_of = record.shares_outstanding.map(|_| record.shares_as_of.unwrap_or(as_of));
    MergedFundamentals {
        figures,
        book_value_as_of: as_of,
        ffo_as_of: as_of,
        float_as_of: as_of,
        used: Vec::new(),
    }
}

/// Fills what is absent from an earlier record.
fn fill(merged: &mut MergedFundamentals, earlier: &Fundamentals) {
    let earlier_dated = dated(earlier);
    let (figures, from) = (&mut merged.figures, earlier_dated.figures);
    if figures.eps_ttm.is_none() {
        (figures.eps_ttm, figures.eps_as_of) = (from.eps_ttm, from.eps_as_of);
    }
    if figures.shares_outstanding.is_none() {
        (figures.shares_outstanding, figures.shares_as_of) = (from.shares_outstanding, from.shares_as_of);
    }
    if figures.book_value_per_share.is_none() {
        merged.book_value_as_of = earlier.as_of;
    }
    if figures.ffo_per_share_ttm.is_none() {
        merged.ffo_as_of = earlier.as_of;
    }
    if figures.float_shares.is_none() {
        merged.float_as_of = earlier.as_of;
    }
    macro_rules! fill_absent {
        ($($field:ident),* $(,)?) => { $(figures.$field = figures.$field.take().or(from.$field);)* };
    }
    fill_absent!(
        ffo_per_share_ttm,
        float_shares,
        market_cap,
        float_market_cap,
        avg_daily_value,
        revenue_ttm,
        net_income_ttm,
        operating_cash_flow_ttm,
        capital_expenditure_ttm,
        free_cash_flow_ttm,
        dividends_paid_ttm,
        book_value_per_share,
        total_debt,
        total_equity,
        enterprise_value,
        gross_margin,
        operating_margin,
        net_margin,
        roe,
        roa,
        current_ratio,
        interest_coverage,
        forward_pe,
        peg_ratio,
        ps_ratio,
        ev_to_ebitda,
        beta,
        fiscal_period_end,
        reported_currency,
    );
}
