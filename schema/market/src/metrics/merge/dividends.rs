//! Merge of dividends: from all observations to the payments used in the figures (R1, R2, R28–R30, R32).
//!
//! The merge has four steps:
//! 1. Of all versions of a record from one source, find the valid version.
//! 2. Choose between the sources: by the ranks of the source policy, and by an overlay with the newest row on top. A
//!    manual record replaces the vendors' records of the same payment.
//! 3. Convert each adjusted amount to the raw amount, and derive missing ex-dates.
//! 4. Merge rows that are one payment, for example under different ids. Drop rows that repeat a payment in another
//!    currency, and rows whose amount another row of the day contains. Quarantine rows that prices or other payments
//!    contradict.
//!
//! A dividend is not used if its declaration date and its ex-date are both after the as-of date.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use std::cmp::Ordering;

use super::as_of::AsOfView;
use super::contained_payments::drop_contained;
use super::payment::{Payment, ValidationContext};
use super::quarantine::{Outliers, quarantine_outliers};
use super::repeats::merge_repeats;
use super::same_day_payments::SameDayPayments;
use super::sources::PreferredWinners;
use super::translation::{dividend_currency, drop_translations};
use super::validation::RowFault;
use super::winner::{MergeRecord, ObservationStatus, QuarantinedRow, WinningVersion, version_time};
use crate::event::Dividend;
use crate::history::{History, Observation};
use crate::metrics::currency::price_currency;
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::schedule::AmountDoubt;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::source_preference::MANUAL;
use crate::row::{Flag, Flags, QuarantineReason};

/// A dividend with an ex-date more than this number of days after the as-of date is quarantined.
const DAYS_AHEAD: i64 = 400;

#[derive(Debug)]
pub(crate) struct MergedDividends<'a> {
    /// Payments that the figures use, sorted by ex-date.
    pub payments: Vec<Payment<'a>>,
    /// ISO 4217 currency of most regular rows of the last two years.
    pub currency: &'a str,
    /// Regular payments with a quarantined amount, sorted by ex-date. The figures assume that something was paid
    /// on the ex-date, but they do not use the amount (R28).
    pub unproven: Vec<Payment<'a>>,
    /// Ex-date and kind of doubt of used payments with a large, unconfirmed amount. At most a part of each amount is
    /// regular (R28).
    pub doubted: Vec<(NaiveDate, AmountDoubt)>,
    /// Payments that the feed or an operator withdrew, sorted by ex-date.
    pub cancelled: Vec<Payment<'a>>,
    pub statuses: Vec<ObservationStatus>,
    pub quarantined: Vec<QuarantinedRow>,
    /// For each date range in which a rank outranks other sources, the indexes of its valid records.
    pub ranked: Vec<Vec<usize>>,
}

impl MergedDividends<'_> {
    pub(crate) fn doubt(&self, ex_date: NaiveDate) -> Option<AmountDoubt> {
        self.doubted.iter().find(|(day, _)| *day == ex_date).map(|(_, doubt)| *doubt)
    }
}

/// Ex-date and amount (new shares per old share) of each stock dividend that is not withdrawn. If `known` is given,
/// only dividends that are visible on its as-of date are included.
pub(crate) fn stock_dividends(
    history: &History,
    winners: &PreferredWinners,
    settlement: Settlement,
    known: Option<&AsOfView>,
) -> Vec<(NaiveDate, Decimal)> {
    let live = winners.winners.iter().filter(|winner| !winner.cancelled);
    let dividends = live.map(|winner| &history.dividends[winner.index].record);
    dividends
        .filter(|dividend| dividend.r#type.class(dividend.frequency) == DividendClass::Stock)
        .filter(|dividend| known.is_none_or(|known| is_declared(dividend, settlement, known)))
        .filter_map(|dividend| dividend.date(settlement).map(|date| (date, dividend.amount)))
        .collect()
}

/// Sum of the dividends with `after` < ex-date <= `through`, without stock dividends and withdrawn rows. `amount`
/// returns the amount of a row on its ex-date, or `None` to skip the row.
pub(crate) fn paid_between(
    history: &History,
    winners: &PreferredWinners,
    settlement: Settlement,
    amount: &dyn Fn(&Observation<Dividend>, NaiveDate) -> Option<Decimal>,
    after: NaiveDate,
    through: NaiveDate,
) -> Decimal {
    let live = winners.winners.iter().filter(|winner| !winner.cancelled);
    let paid = live.map(|winner| &history.dividends[winner.index]).filter_map(|observation| {
        let record = &observation.record;
        let date = record.date(settlement).filter(|date| after < *date && *date <= through)?;
        let is_paid = record.r#type.class(record.frequency) != DividendClass::Stock;
        if is_paid { amount(observation, date) } else { None }
    });
    paid.fold(Decimal::ZERO, Decimal::saturating_add)
}

/// Steps 3 and 4 of the merge: converts amounts, derives ex-dates, merges duplicates and quarantines contradicted rows.
/// `found` is the result of steps 1 and 2.
pub(crate) fn merge_dividends<'a>(
    history: &'a History,
    found: PreferredWinners,
    same_day_payments: &SameDayPayments<'_>,
    validation: &ValidationContext<'_>,
    flags: &mut Flags,
) -> MergedDividends<'a> {
    let PreferredWinners { winners, mut statuses, mut quarantined, ranked } = found;
    let quarantined_before = quarantined.len();
    let (mut payments, mut cancelled) = (Vec::with_capacity(winners.len()), Vec::new());
    for winner in &winners {
        let Some(payment) = payment(history, winner, validation, flags) else { continue };
        if !is_declared(&payment.observation.record, validation.settlement, &validation.known) {
            statuses[winner.index] = ObservationStatus::NotYetKnown;
        } else if let Some((reason, message)) = intrinsic_fault(&payment, winner, validation) {
            statuses[winner.index] = ObservationStatus::Quarantined(reason);
            quarantined.push(QuarantinedRow { index: winner.index, reason, message });
        } else if winner.cancelled {
            payment.observation.id.iter().for_each(|id| flags.add_cancelled(id));
            cancelled.push(payment);
        } else {
            flags.set_if(Flag::ConflictingDuplicate, winner.conflict);
            flags.set_if(Flag::DuplicateCollapsed, winner.conflict || winner.collapsed);
            payments.push(payment);
        }
    }
    payments.sort_by(compare_events);
    cancelled.sort_by(compare_events);
    let mut payments =
        one_per_payment(payments, same_day_payments, validation.settlement, &mut statuses, flags);
    let price_currency = price_currency(history);
    let currency = dividend_currency(&payments, price_currency);
    drop_translations(&mut payments, price_currency, currency, &mut statuses, flags);
    drop_contained(&mut payments, validation, &mut statuses, flags);
    let is_late = |payment: &Payment<'_>| payment.observation.record.declaration_date > Some(payment.ex_date);
    flags.set_if(Flag::DeclaredAfterEx, payments.iter().any(is_late));
    merge_repeats(&mut payments, &mut statuses, validation, flags);
    let Outliers { unproven, doubted } =
        quarantine_outliers(&mut payments, currency, validation, &mut statuses, &mut quarantined, flags);
    // A price factor (R11) exists only for an amount below the price. Rows with a larger or equal amount are
    // quarantined, and the flag shows that their factor is missing. The rows of other sources replace a hidden row.
    let exceeds_price = |row: &QuarantinedRow| row.reason == QuarantineReason::AmountExceedsPrice;
    flags.set_if(Flag::FactorSkipped, quarantined[quarantined_before..].iter().any(exceeds_price));
    quarantined.sort_by_key(|row| row.index);
    MergedDividends { payments, currency, unproven, doubted, cancelled, statuses, quarantined, ranked }
}

/// Fault that needs no other payment: a decision confirmed the row as wrong, or the ex-date is too far in the future.
/// `None` if a decision released the row.
fn intrinsic_fault(
    payment: &Payment<'_>,
    winner: &WinningVersion,
    validation: &ValidationContext<'_>,
) -> Option<RowFault> {
    if validation.decided.releases(payment.observation) {
        return None;
    }
    let confirmed =
        if winner.cancelled { None } else { validation.decided.find_confirmed_fault(payment.observation) };
    confirmed.or_else(|| too_far_ahead(payment, validation.known.as_of))
}

/// Fault of an ex-date more than 400 days after the as-of date. Boards never declare so early, so the year is probably
/// mistyped.
fn too_far_ahead(payment: &Payment<'_>, as_of: NaiveDate) -> Option<RowFault> {
    let days = (payment.ex_date - as_of).num_days();
    (days > DAYS_AHEAD).then(|| {
        let message =
            format!("the ex-date {} is {days} days after the newest session {as_of}", payment.ex_date);
        (QuarantineReason::FarFutureExDate, message)
    })
}

/// True if the dividend is visible on the as-of date, by its declaration date or ex-date.
fn is_declared(dividend: &Dividend, settlement: Settlement, known: &AsOfView) -> bool {
    dividend.date(settlement).is_some_and(|date| known.is_visible(dividend.declaration_date, date))
}

fn payment<'a>(
    history: &'a History,
    winner: &WinningVersion,
    validation: &ValidationContext<'_>,
    flags: &mut Flags,
) -> Option<Payment<'a>> {
    let observation = &history.dividends[winner.index];
    let record = &observation.record;
    let ordinary = record.date(validation.settlement)?;
    let amount = validation.feeds.raw_amount(observation, ordinary);
    let mut expected = None;
    let ex_date = match (record.ex_date, record.record_date) {
        (Some(ex_date), record_date) => {
            expected = record_date
                .and_then(|record_date| expected_ex_date(record, ex_date, record_date, amount, validation));
            flags.set_if(Flag::ExDateUnexpected, expected.is_some());
            ex_date
        }
        (None, Some(record_date)) => {
            flags.set(Flag::ExDateDerived);
            validation.settlement.ex_date_of(
                record_date,
                record.payment_date,
                amount,
                validation.neighbours.close_for(record, ordinary),
            )
        }
        (None, None) => return None,
    };
    let adjusted = validation.splits.ratio_to_basis(ex_date, validation.known.as_of).apply(amount);
    Some(Payment {
        observation,
        index: winner.index,
        named: &history.dividends[winner.named],
        ordinal: winner.ordinal,
        ex_date,
        expected,
        amount,
        adjusted,
        declared: None,
        rate: None,
        special_part: Decimal::ZERO,
        class: record.r#type.class(record.frequency),
        reading: None,
    })
}

/// Ex-date that R1 derives from the record date. `None` if R1 or R2 derives the vendor's ex-date, and for record dates that
/// the rules do not cover.
fn expected_ex_date(
    record: &Dividend,
    ex_date: NaiveDate,
    record_date: NaiveDate,
    amount: Decimal,
    validation: &ValidationContext<'_>,
) -> Option<NaiveDate> {
    let settlement = validation.settlement;
    let ordinary = settlement.ex_date(record_date);
    if ex_date == ordinary || !settlement.covers(record_date) {
        return None;
    }
    let close = validation.neighbours.close_for(record, ordinary);
    let large = settlement.ex_date_of(record_date, record.payment_date, amount, close);
    (ex_date != large).then_some(ordinary)
}

/// Orders payments by ex-date, type and currency, then by version time. Of the rows of one payment, the newest is last.
fn compare_events(a: &Payment<'_>, b: &Payment<'_>) -> Ordering {
    a.event_key()
        .cmp(&b.event_key())
        .then_with(|| a.observation.record.currency.cmp(&b.observation.record.currency))
        .then_with(|| version_time(a.observation).cmp(&version_time(b.observation)))
        .then_with(|| a.observation.id.cmp(&b.observation.id))
        .then_with(|| a.amount.cmp(&b.amount))
}

/// Merges rows with the same ex-date, type and currency, but different ids, into one payment (R29).
fn one_per_payment<'a>(
    payments: Vec<Payment<'a>>,
    same_day_payments: &SameDayPayments<'_>,
    settlement: Settlement,
    statuses: &mut [ObservationStatus],
    flags: &mut Flags,
) -> Vec<Payment<'a>> {
    let same = |a: &Payment<'_>, b: &Payment<'_>| {
        a.event_key() == b.event_key() && a.observation.record.currency == b.observation.record.currency
    };
    let mut kept = Vec::with_capacity(payments.len());
    for rows in payments.chunk_by(same) {
        if let [only] = rows {
            kept.push(*only);
            continue;
        }
        let mut day = payments_of_day(rows, same_day_payments);
        // Before this sort, the order of the groups depends on the newest row of each group. A repeated row could
        // change that order. The amounts give an order that repeated rows do not change.
        day.sort_by_key(|versions| versions[0].amount);
        for versions in &day {
            let best = best_of(versions, settlement);
            flags.set_if(Flag::ConflictingDuplicate, versions.iter().any(|row| row.amount != best.amount));
            for dropped in versions.iter().filter(|row| row.index != best.index) {
                flags.set(Flag::DuplicateCollapsed);
                statuses[dropped.index] = ObservationStatus::Duplicate(best.index);
            }
            kept.push(best);
        }
    }
    kept
}

/// Groups the rows of one ex-date, type and currency by payment. In each group, manual records are first, then the
/// newest rows.
fn payments_of_day<'a>(
    rows: &[Payment<'a>],
    same_day_payments: &SameDayPayments<'_>,
) -> Vec<Vec<Payment<'a>>> {
    let is_manual = |row: &&Payment<'_>| row.observation.source == MANUAL;
    let (manual, vendors): (Vec<&Payment<'a>>, Vec<&Payment<'a>>) = rows.iter().rev().partition(is_manual);
    let mut day: Vec<Vec<Payment<'a>>> = Vec::new();
    for row in manual.into_iter().chain(vendors) {
        let is_version = |versions: &&mut Vec<Payment<'_>>| {
            !row.observation.record.is_distinct_payment(&versions[0].observation.record, same_day_payments)
        };
        match day.iter_mut().find(is_version) {
            Some(versions) => versions.push(*row),
            None => day.push(vec![*row]),
        }
    }
    day
}

/// Row that is used for a payment. Only rows with the amount of `versions[0]` are considered. Of these, rows with an id
/// are preferred, then the row with the most complete dates.
fn best_of<'a>(versions: &[Payment<'a>], settlement: Settlement) -> Payment<'a> {
    let latest = versions[0];
    let quality =
        |row: &&Payment<'_>| (row.observation.id.is_some(), row.observation.record.preference(settlement));
    let of_amount = versions.iter().rev().filter(|row| row.amount == latest.amount);
    of_amount.max_by_key(quality).copied().unwrap_or(latest)
}
