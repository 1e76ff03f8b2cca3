//! The distributions that count, from every observation of them (R1, R2, R28–R30, R32).
//!
//! In order: one winner per source and key, the believed source per date range with manual records on top, amounts
//! brought back to the basis of their own ex-date, missing ex-dates derived, two ids of one event made one, rows that
//! their neighbours contradict held back. What was declared after the as-of date is not known yet.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use std::cmp::Ordering;

use super::beside::Beside;
use super::known::Known;
use super::payment::{Basics, Payment};
use super::quarantine::hold_outliers;
use super::row_rule::RowFault;
use super::sources::{believed, withdraw_by_manual};
use super::version::{Fate, Held, HeldSymbols, Keyed, Winner, moment, winners};
use crate::event::{Basis, Dividend, DividendType, Kind};
use crate::history::{History, SourcePolicy};
use crate::measure::class::Class;
use crate::measure::ex_date::{FIRST_T_PLUS_3, from_record_date, of_distribution};
use crate::measure::policy::MANUAL;
use crate::row::{Flag, Flags, HoldReason};

/// Days an ex-date may lie ahead of the newest session.
const DAYS_AHEAD: i64 = 400;

/// Winners of the believed sources, before amounts and neighbours are looked at.
#[derive(Debug)]
pub(crate) struct DividendWinners {
    pub winners: Vec<Winner>,
    pub fates: Vec<Fate>,
    pub held: Vec<Held>,
}

/// The outcome of merging dividends.
#[derive(Debug)]
pub(crate) struct MergedDividends<'a> {
    /// By ex-date.
    pub payments: Vec<Payment<'a>>,
    /// Regular ones held as outliers, by ex-date: their amounts do not count, but their ex-dates do (R28).
    pub unproven: Vec<Payment<'a>>,
    /// Withdrawn ones, by ex-date.
    pub cancelled: Vec<Payment<'a>>,
    pub fates: Vec<Fate>,
    pub held: Vec<Held>,
}

/// First half: who won each key, and which source is believed.
pub(crate) fn dividend_winners(
    history: &History,
    policy: &SourcePolicy,
    symbols: HeldSymbols<'_>,
    beside: &Beside<'_>,
) -> DividendWinners {
    let observations = &history.dividends;
    let mut result = DividendWinners {
        winners: Vec::new(),
        fates: vec![Fate::Used; observations.len()],
        held: Vec::new(),
    };
    let winners = winners(observations, symbols, beside, &mut result.fates, &mut result.held);
    let mut kept = believed(observations, winners, Kind::Dividend, policy, beside, &mut result.fates);
    withdraw_by_manual(observations, &mut kept, beside, &mut result.fates);
    result.winners = kept;
    result
}

/// Live stock dividends as (ex-date, new shares per old share), of those known when it is given.
pub(crate) fn stock_dividends(
    history: &History,
    winners: &DividendWinners,
    known: Option<&Known>,
) -> Vec<(NaiveDate, Decimal)> {
    let live = winners
        .winners
        .iter()
        .filter(|winner| !winner.cancelled)
        .map(|winner| &history.dividends[winner.index].record);
    live.filter(|dividend| dividend.r#type.class(dividend.frequency) == Class::Stock)
        .filter(|dividend| known.is_none_or(|known| is_declared(dividend, known)))
        .filter_map(|dividend| dividend.date().map(|date| (date, dividend.amount)))
        .collect()
}

/// Second half: amounts, ex-dates, duplicates, neighbours.
pub(crate) fn merge_dividends<'a>(
    history: &'a History,
    found: DividendWinners,
    beside: &Beside<'_>,
    basics: &Basics<'_>,
    flags: &mut Flags,
) -> MergedDividends<'a> {
    let DividendWinners { winners, mut fates, mut held } = found;
    let (mut payments, mut cancelled) = (Vec::with_capacity(winners.len()), Vec::new());
    for winner in &winners {
        let Some(payment) = payment(history, winner, basics, flags) else { continue };
        if !is_declared(&payment.observation.record, &basics.known) {
            fates[winner.index] = Fate::NotYetKnown;
        } else if let Some((reason, message)) = held_by_itself(&payment, winner, basics) {
            fates[winner.index] = Fate::Quarantined(reason);
            held.push(Held { index: winner.index, reason, message });
        } else if winner.cancelled {
            payment.observation.id.iter().for_each(|id| flags.cancelled(id));
            cancelled.push(payment);
        } else {
            if winner.conflict {
                flags.set(Flag::ConflictingDuplicate);
                flags.set(Flag::DuplicateCollapsed);
            }
            payments.push(payment);
        }
    }
    payments.sort_by(compare_events);
    cancelled.sort_by(compare_events);
    let mut payments = one_per_payment(payments, beside, &mut fates, flags);
    let unproven = hold_outliers(&mut payments, basics, &mut fates, &mut held, flags);
    // Such a row puts no factor on prices either (R11).
    if held.iter().any(|row| row.reason == HoldReason::AmountExceedsPrice) {
        flags.set(Flag::FactorSkipped);
    }
    held.sort_by_key(|row| row.index);
    MergedDividends { payments, unproven, cancelled, fates, held }
}

/// Why a payment is held whatever its neighbours say.
fn held_by_itself(payment: &Payment<'_>, winner: &Winner, basics: &Basics<'_>) -> Option<RowFault> {
    if basics.decided.releases(payment.observation) {
        return None;
    }
    let confirmed = if winner.cancelled { None } else { basics.decided.confirms(payment.observation) };
    confirmed.or_else(|| too_far_ahead(payment, basics.known.as_of()))
}

/// An ex-date more than 400 days ahead is a mistyped year: no board declares so long before.
fn too_far_ahead(payment: &Payment<'_>, as_of: NaiveDate) -> Option<RowFault> {
    let days = (payment.ex_date - as_of).num_days();
    (days > DAYS_AHEAD).then(|| {
        let message =
            format!("the ex-date {} is {days} days after the newest session {as_of}", payment.ex_date);
        (HoldReason::FarFutureExDate, message)
    })
}

/// Whether a dividend is known to be declared.
fn is_declared(dividend: &Dividend, known: &Known) -> bool {
    dividend.date().is_some_and(|date| known.has(dividend.declaration_date, date))
}

fn payment<'a>(
    history: &'a History,
    winner: &Winner,
    basics: &Basics<'_>,
    flags: &mut Flags,
) -> Option<Payment<'a>> {
    let observation = &history.dividends[winner.index];
    let record = &observation.record;
    let ordinary = record.date()?;
    let amount = match record.amount_basis {
        Basis::Raw => record.amount,
        Basis::SplitAdjusted => {
            let basis = record.basis_as_of.unwrap_or_else(|| (basics.newest_day)(&observation.source));
            basics.all_splits.carry(basis, ordinary).apply(record.amount)
        }
    };
    let ex_date = match (record.ex_date, record.record_date) {
        (Some(ex_date), record_date) => {
            if record_date
                .is_some_and(|record_date| is_unexpected(record, ex_date, record_date, amount, basics))
            {
                flags.set(Flag::ExDateUnexpected);
            }
            ex_date
        }
        (None, Some(record_date)) => {
            flags.set(Flag::ExDateDerived);
            of_distribution(
                record_date,
                record.payment_date,
                amount,
                basics.neighbours.close_for(record, ordinary),
            )
        }
        (None, None) => return None,
    };
    let adjusted = basics.splits.carry(ex_date, basics.known.as_of()).apply(amount);
    Some(Payment {
        observation,
        index: winner.index,
        named: &history.dividends[winner.named],
        part: winner.part,
        ex_date,
        amount,
        adjusted,
        class: record.r#type.class(record.frequency),
    })
}

/// Whether a vendor's ex-date is neither the ordinary one nor, for a large distribution, the one after payment.
fn is_unexpected(
    record: &Dividend,
    ex_date: NaiveDate,
    record_date: NaiveDate,
    amount: Decimal,
    basics: &Basics<'_>,
) -> bool {
    let ordinary = from_record_date(record_date);
    ex_date != ordinary && record_date >= FIRST_T_PLUS_3 && {
        let close = basics.neighbours.close_for(record, ordinary);
        ex_date != of_distribution(record_date, record.payment_date, amount, close)
    }
}

fn event_key(payment: &Payment<'_>) -> (NaiveDate, DividendType) {
    (payment.ex_date, payment.observation.record.r#type)
}

/// By ex-date, type and currency; then by when each was said, so that the last of an event is the latest.
fn compare_events(a: &Payment<'_>, b: &Payment<'_>) -> Ordering {
    event_key(a)
        .cmp(&event_key(b))
        .then_with(|| a.observation.record.currency.cmp(&b.observation.record.currency))
        .then_with(|| moment(a.observation).cmp(&moment(b.observation)))
        .then_with(|| a.observation.id.cmp(&b.observation.id))
        .then_with(|| a.amount.cmp(&b.amount))
}

/// Makes one of rows with the same ex-date, type and currency under different ids (R29).
fn one_per_payment<'a>(
    payments: Vec<Payment<'a>>,
    beside: &Beside<'_>,
    fates: &mut [Fate],
    flags: &mut Flags,
) -> Vec<Payment<'a>> {
    let same = |a: &Payment<'_>, b: &Payment<'_>| {
        event_key(a) == event_key(b) && a.observation.record.currency == b.observation.record.currency
    };
    let mut kept = Vec::with_capacity(payments.len());
    for rows in payments.chunk_by(same) {
        if let [only] = rows {
            kept.push(*only);
            continue;
        }
        let mut day = payments_of_day(rows, beside);
        // By amount, so that one of them said again later does not change their order.
        day.sort_by_key(|versions| versions[0].amount);
        for versions in &day {
            let best = best_of(versions);
            if versions.iter().any(|row| row.amount != best.amount) {
                flags.set(Flag::ConflictingDuplicate);
            }
            for dropped in versions.iter().filter(|row| row.index != best.index) {
                flags.set(Flag::DuplicateCollapsed);
                fates[dropped.index] = Fate::Duplicate(best.index);
            }
            kept.push(best);
        }
    }
    kept
}

/// Divides the rows of a day, in order, into those of each payment; each begins with the row that says its amount. Manual records are the last word.
fn payments_of_day<'a>(rows: &[Payment<'a>], beside: &Beside<'_>) -> Vec<Vec<Payment<'a>>> {
    let is_manual = |row: &&Payment<'_>| row.observation.source == MANUAL;
    let (manual, vendors): (Vec<&Payment<'a>>, Vec<&Payment<'a>>) = rows.iter().rev().partition(is_manual);
    let mut day: Vec<Vec<Payment<'a>>> = Vec::new();
    for row in manual.into_iter().chain(vendors) {
        let is_version = |versions: &&mut Vec<Payment<'_>>| {
            !row.observation.record.is_beside(&versions[0].observation.record, beside)
        };
        match day.iter_mut().find(is_version) {
            Some(versions) => versions.push(*row),
            None => day.push(vec![*row]),
        }
    }
    day
}

/// Of the rows that say the last amount the best dated one.
fn best_of<'a>(versions: &[Payment<'a>]) -> Payment<'a> {
    let latest = versions[0];
    let quality = |row: &&Payment<'_>| (row.observation.id.is_some(), row.observation.record.preference());
    let of_amount = versions.iter().rev().filter(|row| row.amount == latest.amount);
    of_amount.max_by_key(quality).copied().unwrap_or(latest)
}
