//! Merge of near duplicates: rows of one payment whose ex-dates are a few days apart (R34.1).

use std::collections::BTreeMap;

use super::payment::{Payment, ValidationContext};
use super::winner::ObservationStatus;
use crate::metrics::dividends::schedule::{RepeatedPayment, find_repeats};
use crate::row::{Flag, Flags};

/// Removes the less reliable row of each pair of near duplicates. `payments` are sorted by ex-date.
pub(crate) fn merge_repeats(
    payments: &mut Vec<Payment<'_>>,
    statuses: &mut [ObservationStatus],
    validation: &ValidationContext<'_>,
    flags: &mut Flags,
) {
    // Most payers have no two ex-dates that are near each other, and so no near duplicates.
    let is_near = |pair: &[Payment<'_>]| {
        let days = (pair[1].ex_date - pair[0].ex_date).num_days();
        0 < days && days <= validation.rules.schedule.duplicate_days
    };
    if !payments.windows(2).any(is_near) {
        return;
    }
    let mut dropped = Vec::new();
    for positions in by_currency(payments) {
        let candidates: Vec<RepeatedPayment<'_>> =
            positions.iter().map(|position| candidate(&payments[*position], validation)).collect();
        for pair in find_repeats(&candidates, &validation.rules.schedule) {
            let (repeat, kept) = (positions[pair.dropped], positions[pair.kept]);
            if validation.decided.releases(payments[repeat].observation) {
                continue;
            }
            statuses[payments[repeat].index] = ObservationStatus::Duplicate(payments[kept].index);
            flags.set(Flag::NearDuplicate);
            dropped.push(repeat);
        }
    }
    let mut position = 0;
    payments.retain(|_| {
        position += 1;
        !dropped.contains(&(position - 1))
    });
}

fn candidate<'a>(payment: &Payment<'a>, validation: &ValidationContext<'_>) -> RepeatedPayment<'a> {
    let record = &payment.observation.record;
    RepeatedPayment {
        row: payment.schedule_row(payment.adjusted, None),
        id: payment.observation.id.as_deref().map(|id| (payment.observation.source.as_str(), id)),
        implied: record.record_date.map(|date| validation.settlement.ex_date(date)),
        is_business_day: validation.settlement.is_business_day(payment.ex_date),
        is_in_price: record.currency == validation.neighbours.currency
            && validation.adjusted_closes_contain(payment.amount, payment.ex_date),
    }
}

/// Indexes of the regular payments of each currency. Payments are left out if another payment has the same ex-date.
fn by_currency(payments: &[Payment<'_>]) -> Vec<Vec<usize>> {
    let mut currencies: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, payment) in payments.iter().enumerate() {
        let is_alone =
            |other: Option<&Payment<'_>>| other.is_none_or(|other| other.ex_date != payment.ex_date);
        let before = position.checked_sub(1).and_then(|before| payments.get(before));
        if !payment.class.is_regular() || !is_alone(before) || !is_alone(payments.get(position + 1)) {
            continue;
        }
        let currency = payment.observation.record.currency.as_str();
        currencies.entry(currency).or_default().push(position);
    }
    currencies.into_values().collect()
}
