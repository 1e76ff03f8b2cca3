//! Payments that contain other rows of their ex-date (R45). Some feeds send a total and a part of it as two rows: a
//! distribution of 7.857, and the capital gain of 6.42 in it. The smaller rows may be parts if their sum is at most the
//! largest amount, within 2 %. Three tests decide, in this order:
//! 1. A feed's adjusted closes show one of two sums: the largest amount alone, or all amounts together (R40).
//! 2. The price falls by 0.6 to 1.4 times one of these two sums, and not of the other. The sum is at least 5 % of the
//!    close before the ex-date (R28).
//! 3. The largest amount is the sum of two or more smaller rows, within 2 %. They are parts.
//!
//! Otherwise, the rows are separate payments (R29). Parts are not used, and their special sum is the special part of the
//! payment. A manual record, and a row that a decision released, is never a part.

use rust_decimal::Decimal;

use super::payment::{Payment, ValidationContext};
use super::winner::ObservationStatus;
use crate::metrics::arithmetic::{exact, remove_division_error};
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::source_preference::MANUAL;
use crate::row::{Flag, Flags};

/// Largest difference of a total and the sum of its parts, as a share of the total.
const TOLERANCE: Decimal = exact("0.02");

/// Drops the rows that are parts of another payment of their ex-date. `payments` are sorted by ex-date.
pub(crate) fn drop_contained(
    payments: &mut Vec<Payment<'_>>,
    validation: &ValidationContext<'_>,
    statuses: &mut [ObservationStatus],
    flags: &mut Flags,
) {
    for day in payments.chunk_by_mut(|a, b| a.ex_date == b.ex_date).filter(|day| day.len() > 1) {
        let Some(total) = total_of_parts(day, validation) else { continue };
        let container = day[total].index;
        let (mut regular, mut special) = (Decimal::ZERO, Decimal::ZERO);
        for part in parts_of(day, total, validation) {
            let payment = &day[part];
            let sum = if payment.class.is_regular() { &mut regular } else { &mut special };
            *sum += payment.adjusted;
            statuses[payment.index] = ObservationStatus::PartOf(container);
            flags.set(Flag::DuplicateCollapsed);
        }
        let payment = &mut day[total];
        if payment.class.is_regular() && special < payment.adjusted {
            payment.special_part = special;
        } else if payment.class.is_regular() {
            payment.class = DividendClass::Special;
        } else if regular > Decimal::ZERO {
            payment.class = DividendClass::Regular;
            payment.special_part = (payment.adjusted - regular).max(Decimal::ZERO);
        }
        flags.set_if(Flag::InferredSpecial, special > Decimal::ZERO);
    }
    payments.retain(|payment| !matches!(statuses[payment.index], ObservationStatus::PartOf(_)));
}

/// Index of the payment of a day that contains the other ones; `None` if no payment does.
fn total_of_parts(day: &[Payment<'_>], validation: &ValidationContext<'_>) -> Option<usize> {
    let cash = (0..day.len()).filter(|index| day[*index].class.in_ttm_total());
    // Of equal amounts, the regular one is the total: a fund sends a gain as a distribution, and as the gain in it.
    let total = cash.max_by_key(|index| (day[*index].amount, day[*index].class.is_regular()))?;
    let (payment, parts) = (&day[total], parts_of(day, total, validation));
    let sum: Decimal = parts.iter().map(|part| day[*part].amount).sum();
    let tolerance = payment.amount * TOLERANCE;
    if parts.is_empty() || sum - payment.amount > tolerance {
        return None;
    }
    let is_total = shown_by_price(payment, payment.amount + sum, validation)
        .unwrap_or(parts.len() > 1 && (payment.amount - sum).abs() <= tolerance);
    is_total.then_some(total)
}

/// Indexes of the payments of a day that may be parts of the payment `total`.
fn parts_of(day: &[Payment<'_>], total: usize, validation: &ValidationContext<'_>) -> Vec<usize> {
    let is_part = |index: &usize| {
        let (payment, observation) = (&day[*index], day[*index].observation);
        *index != total
            && payment.class.in_ttm_total()
            && observation.record.currency == day[total].observation.record.currency
            && observation.source != MANUAL
            && !validation.decided.releases(observation)
    };
    (0..day.len()).filter(is_part).collect()
}

/// True if prices show that the amount of `payment` was paid alone, false if they show `all`, the sum of all amounts.
/// `None` if they show neither or both.
fn shown_by_price(payment: &Payment<'_>, all: Decimal, validation: &ValidationContext<'_>) -> Option<bool> {
    if payment.observation.record.currency != validation.neighbours.currency {
        return None;
    }
    let all = remove_division_error(all);
    let decide = |shows: &dyn Fn(Decimal) -> bool| match (shows(payment.amount), shows(all)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    };
    let ex_date = payment.ex_date;
    decide(&|amount| validation.adjusted_closes_contain(amount, ex_date))
        .or_else(|| decide(&|amount| validation.neighbours.has_visible_fall(amount, ex_date)))
}
