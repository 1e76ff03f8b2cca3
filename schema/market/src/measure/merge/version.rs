//! One winner per source and key out of every revision ever seen (R29).
//!
//! The key is the vendor's id, else the natural key; amounts of one natural key that a file named beside each other are
//! keys of their own. Of one key the greatest version wins: revision, then preference
//! (rows with an id only: the ex-date that the record date implies, then the number of dates; a retraction has the
//! highest, so that a put of the same revision never resurrects it), then observation time, retraction, line, frame.
//! That order is total, so any permutation of the observations gives the same winners. A retraction without an id also
//! withdraws rows that have one, if they share its natural key and source and are no newer. One without an amount takes all
//! of a day, one with an amount spares the payments beside it.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate, Utc};
use smallvec::{SmallVec, smallvec};

use super::beside::{Beside, natural_key};
use super::row_rule::{RowFault, dividend_fault, dividend_key_fault, split_fault};
use crate::event::{Action, Dividend, Split};
use crate::history::Observation;
use crate::measure::ex_date::from_record_date;
use crate::row::HoldReason;
use crate::symbol::Symbol;
use crate::version::Version;

/// What merging needs to know of a record.
pub(crate) trait Keyed {
    /// Compares natural keys (dates, type, currency).
    fn compare_natural(&self, other: &Self) -> Ordering;
    /// How much better dated the row is than another of its id and revision.
    fn preference(&self) -> u32;
    /// The day it takes effect, as far as the row alone tells.
    fn date(&self) -> Option<NaiveDate>;
    /// Why a put or a retraction of it cannot be used.
    fn fault(&self, action: Action, has_id: bool) -> Option<RowFault>;
    /// The symbol the row names.
    fn symbol(&self) -> &Symbol;
    /// Whether it is another payment than a record of the same natural key, rather than another version of it.
    fn is_beside(&self, other: &Self, beside: &Beside<'_>) -> bool;
    /// The order of the payments of one day.
    fn compare_beside(&self, other: &Self) -> Ordering;
}

impl Keyed for Dividend {
    fn compare_natural(&self, other: &Self) -> Ordering {
        natural_key(self).cmp(&natural_key(other))
    }

    fn preference(&self) -> u32 {
        let derived = self.record_date.map(from_record_date);
        let agrees = derived.is_some() && derived == self.ex_date;
        let dates = [self.ex_date, self.record_date, self.payment_date, self.declaration_date];
        dates.iter().flatten().fold(8 * u32::from(agrees), |sum, _| sum + 1)
    }

    fn date(&self) -> Option<NaiveDate> {
        self.ex_date.or_else(|| self.record_date.map(from_record_date))
    }

    fn fault(&self, action: Action, has_id: bool) -> Option<RowFault> {
        match action {
            Action::Put => dividend_fault(self),
            Action::Retract if has_id => None,
            Action::Retract => dividend_key_fault(self),
        }
    }

    fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    fn is_beside(&self, other: &Self, beside: &Beside<'_>) -> bool {
        beside.are_two(self, other)
    }

    fn compare_beside(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl Keyed for Split {
    fn compare_natural(&self, other: &Self) -> Ordering {
        self.ex_date.cmp(&other.ex_date)
    }

    fn preference(&self) -> u32 {
        [self.declaration_date, self.payable_date].iter().flatten().fold(0, |sum, _| sum + 1)
    }

    fn date(&self) -> Option<NaiveDate> {
        Some(self.ex_date)
    }

    fn fault(&self, action: Action, _: bool) -> Option<RowFault> {
        if action == Action::Put { split_fault(self) } else { None }
    }

    fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    fn is_beside(&self, _: &Self, _: &Beside<'_>) -> bool {
        false
    }

    fn compare_beside(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// What became of an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It counts.
    Used,
    /// A greater version of its key (by position in the history) replaced it.
    Superseded(usize),
    /// Its record was withdrawn.
    Cancelled,
    /// Another id's row (by position) says the same or a later thing for the same ex-date, type and currency.
    Duplicate(usize),
    /// Another source was preferred for its date range.
    OtherSource,
    /// A manual record replaced it.
    Overridden,
    /// It was held back; the reason code.
    Quarantined(HoldReason),
    /// It was declared after the as-of date.
    NotYetKnown,
    /// A later version moved it to another symbol.
    Moved,
}

/// A row that cannot be used or is held back, with the reason and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Position among the history's observations of the kind.
    pub index: usize,
    /// Why.
    pub reason: HoldReason,
    /// The same as a sentence.
    pub message: String,
}

/// The winner of one source and key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Winner {
    /// The observation with the record to show: the greatest put, also under a tombstone.
    pub index: usize,
    /// Whether it was withdrawn.
    pub cancelled: bool,
    /// Whether a row of its key at the same revision says another thing without an id to tell which is meant.
    pub conflict: bool,
    /// The version under the earliest of the security's symbols.
    pub named: usize,
    /// Place among the payments of its day that nothing but their amounts tells apart.
    pub part: usize,
}

/// Where a symbol stands among those that a security held, the earliest first; `None` for others' symbols.
pub(crate) type HeldSymbols<'a> = &'a dyn Fn(&Symbol) -> Option<usize>;

/// Picks the winners, sorted by source; sets the fates of everything that lost.
pub(crate) fn winners<T: Keyed + SameContent>(
    observations: &[Observation<T>],
    symbols: HeldSymbols<'_>,
    beside: &Beside<'_>,
    fates: &mut [Fate],
    held: &mut Vec<Held>,
) -> Vec<Winner> {
    let mut order: Vec<usize> = Vec::with_capacity(observations.len());
    for (index, observation) in observations.iter().enumerate() {
        match observation.record.fault(observation.action, observation.id.is_some()) {
            Some((reason, message)) => {
                fates[index] = Fate::Quarantined(reason);
                held.push(Held { index, reason, message });
            }
            None => order.push(index),
        }
    }
    let at = |index: usize| &observations[index];
    // Nearly always there is one source, which need not be compared some thousand times.
    let one_source = observations.windows(2).all(|pair| pair[0].source == pair[1].source);
    let compare_keys = |a: usize, b: usize| {
        let sources = if one_source { Ordering::Equal } else { at(a).source.cmp(&at(b).source) };
        sources.then_with(|| compare_in_source(at(a), at(b)))
    };
    order.sort_unstable_by(|a, b| compare_keys(*a, *b).then_with(|| version(at(*a)).cmp(&version(at(*b)))));
    let withdrawals = withdrawals(observations, &order);
    let mut winners = Vec::new();
    let keys = order.chunk_by(|a, b| compare_keys(*a, *b).is_eq());
    for (part, versions) in keys.flat_map(|versions| (0..).zip(payments(observations, versions, beside))) {
        let Some((last, earlier)) = versions.split_last() else { continue };
        let superseded =
            |fates: &mut [Fate], by| earlier.iter().for_each(|index| fates[*index] = Fate::Superseded(by));
        superseded(fates, *last);
        if moved_away(observations, &versions, symbols) {
            fates[*last] = Fate::Moved;
            continue;
        }
        let Some(shown) = versions.iter().rev().copied().find(|index| is_put(at(*index))) else {
            fates[*last] = Fate::Cancelled;
            continue;
        };
        let cancelled = !is_put(at(*last)) || is_withdrawn(at(*last), &withdrawals, beside);
        if cancelled {
            fates[*last] = Fate::Cancelled;
            fates[shown] = Fate::Cancelled;
        }
        winners.push(Winner {
            index: shown,
            cancelled,
            conflict: !cancelled && conflicts(observations, &versions, *last),
            named: named(observations, &versions, symbols).unwrap_or(shown),
            part,
        });
    }
    winners
}

/// The put under the earliest symbol: a vendor that files the past under a new ticker renames no record.
fn named<T: Keyed>(
    observations: &[Observation<T>],
    versions: &[usize],
    symbols: HeldSymbols<'_>,
) -> Option<usize> {
    let place = |index: &usize| {
        let symbol = observations[*index].record.symbol();
        let place = symbols(symbol);
        (place.is_none(), place, symbol)
    };
    versions.iter().copied().filter(|index| is_put(&observations[*index])).min_by_key(place)
}

/// Versions of one payment, seldom more than one.
type Versions = SmallVec<[usize; 2]>;

/// Divides the versions of one key, in order, into those of each payment of the day, the smallest first.
///
/// Of the amounts, from the greatest version down, each is a payment of its own if it is beside all found before. The
/// rest are earlier versions of the first of these that they are not beside. A retraction withdraws every payment that
/// it is not beside.
fn payments<T: Keyed + SameContent>(
    observations: &[Observation<T>],
    versions: &[usize],
    beside: &Beside<'_>,
) -> SmallVec<[Versions; 1]> {
    if let [only] = versions {
        return smallvec![smallvec![*only]];
    }
    let mut found: Vec<&T> = Vec::new();
    if observations[versions[0]].id.is_none() {
        for record in versions.iter().rev().map(|index| &observations[*index]).filter(|o| is_put(o)) {
            if found.iter().all(|payment| payment.is_beside(&record.record, beside)) {
                found.push(&record.record);
            }
        }
    }
    if found.len() < 2 {
        return smallvec![Versions::from_slice(versions)];
    }
    let is_version = |row: &Observation<T>, payment: &T| !row.record.is_beside(payment, beside);
    let home = |row: &Observation<T>| found.iter().position(|payment| is_version(row, payment));
    let of = |place: usize| {
        let own = |row: &Observation<T>| {
            if is_put(row) { home(row) == Some(place) } else { is_version(row, found[place]) }
        };
        versions.iter().copied().filter(|index| own(&observations[*index])).collect()
    };
    let mut places: Vec<usize> = (0..found.len()).collect();
    places.sort_by(|a, b| found[*a].compare_beside(found[*b]));
    places.into_iter().map(of).collect()
}

/// Whether two records say the same amount or ratio.
pub(crate) trait SameContent {
    fn same_content(&self, other: &Self) -> bool;
}

impl SameContent for Dividend {
    fn same_content(&self, other: &Self) -> bool {
        self.amount == other.amount && self.amount_basis == other.amount_basis
    }
}

impl SameContent for Split {
    fn same_content(&self, other: &Self) -> bool {
        self.from.checked_mul(other.to) == self.to.checked_mul(other.from)
    }
}

fn is_put<T>(observation: &Observation<T>) -> bool {
    observation.action == Action::Put
}

/// Orders rows of one source by key: those with equal ids, or without id and with equal natural keys, are equal.
fn compare_in_source<T: Keyed>(a: &Observation<T>, b: &Observation<T>) -> Ordering {
    a.id.cmp(&b.id).then_with(|| match a.id {
        Some(_) => Ordering::Equal,
        None => a.record.compare_natural(&b.record),
    })
}

/// The order of R29, the preference of rows with an id included.
fn version<T: Keyed>(observation: &Observation<T>) -> Version<'_> {
    observation.version(preference(observation))
}

fn preference<T: Keyed>(observation: &Observation<T>) -> u32 {
    match (&observation.id, observation.action) {
        (None, _) => 0,
        (Some(_), Action::Retract) => u32::MAX,
        (Some(_), Action::Put) => observation.record.preference(),
    }
}

/// Retractions without an id, which may withdraw rows that have one.
fn withdrawals<'a, T>(observations: &'a [Observation<T>], order: &[usize]) -> Vec<&'a Observation<T>> {
    order.iter().map(|index| &observations[*index]).filter(|row| row.id.is_none() && !is_put(row)).collect()
}

fn is_withdrawn<T: Keyed>(
    winner: &Observation<T>,
    withdrawals: &[&Observation<T>],
    beside: &Beside<'_>,
) -> bool {
    winner.id.is_some()
        && withdrawals.iter().any(|retraction| {
            retraction.source == winner.source
                && retraction.record.compare_natural(&winner.record) == Ordering::Equal
                && !retraction.record.is_beside(&winner.record, beside)
                && (winner.revision, winner.observed_at) <= (retraction.revision, retraction.observed_at)
        })
}

fn moved_away<T: Keyed>(
    observations: &[Observation<T>],
    versions: &[usize],
    symbols: HeldSymbols<'_>,
) -> bool {
    let symbol = |index: &usize| observations[*index].record.symbol();
    let Some(last) = versions.last() else { return false };
    observations[*last].id.is_some()
        && versions.iter().any(|index| symbol(index) != symbol(last))
        && symbols(symbol(last)).is_none()
}

/// Without an id, another amount at the winner's revision is a conflict: nothing says that it is a correction.
fn conflicts<T: Keyed + SameContent>(
    observations: &[Observation<T>],
    versions: &[usize],
    winner: usize,
) -> bool {
    let best = &observations[winner];
    best.id.is_none()
        && versions.iter().map(|index| &observations[*index]).any(|other| {
            is_put(other) && other.revision == best.revision && !other.record.same_content(&best.record)
        })
}

/// The version time of an observation, as far as rows of different keys can be compared.
pub(crate) fn moment<T>(observation: &Observation<T>) -> (DateTime<Utc>, u64, &[u8; 16]) {
    (observation.observed_at, observation.line, &observation.frame)
}

/// How well dated a dividend is: of two rows of one id and revision, the better dated one counts (R29).
pub fn dividend_preference(dividend: &Dividend) -> u32 {
    dividend.preference()
}

/// How well dated a split is.
pub fn split_preference(split: &Split) -> u32 {
    split.preference()
}

#[cfg(test)]
mod tests;
