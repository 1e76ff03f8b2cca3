//! Translations: rows that repeat a payment in another currency (R39).
//!
//! Some feeds have two rows for one payment, one in the currency of the prices and one in a foreign currency. The
//! foreign row is a translation if both rows have the same ex-date and type, and if their payment dates are equal or
//! one is missing. A translation is not used. Two rows in the same currency are never translations of each other.

use super::payment::Payment;
use super::winner::ObservationStatus;
use crate::row::{Flag, Flags};

/// Drops rows that repeat a payment in another currency. `payments` are sorted by ex-date and type; `currency` is the
/// currency of the prices.
pub(crate) fn drop_translations(
    payments: &mut Vec<Payment<'_>>,
    currency: &str,
    statuses: &mut [ObservationStatus],
    flags: &mut Flags,
) {
    let is_foreign = |payment: &Payment<'_>| payment.observation.record.currency != currency;
    if !payments.iter().any(is_foreign) {
        return;
    }
    for day in payments.chunk_by(|a, b| a.event_key() == b.event_key()) {
        for foreign in day.iter().filter(|payment| is_foreign(payment)) {
            let counts = |other: &&Payment<'_>| !is_foreign(other) && may_be_one(other, foreign);
            if let Some(counted) = day.iter().find(counts) {
                statuses[foreign.index] = ObservationStatus::Translation(counted.index);
                flags.set(Flag::PaymentTranslated);
            }
        }
    }
    payments.retain(|payment| !matches!(statuses[payment.index], ObservationStatus::Translation(_)));
}

/// True if two rows may be one payment: their payment dates are equal, or a payment date is missing.
fn may_be_one(a: &Payment<'_>, b: &Payment<'_>) -> bool {
    let dates = a.observation.record.payment_date.zip(b.observation.record.payment_date);
    dates.is_none_or(|(a, b)| a == b)
}
