//! Currencies of one payment (R39): the dividend currency of a security, and translations.
//!
//! The dividend currency is the currency of most regular rows of the last two years, up to the newest one. If several
//! currencies have as many rows, the currency of the prices is preferred, then the currency of the newest row. A single
//! row in another currency therefore never changes it.
//!
//! Some feeds have two rows for one payment, one in the currency of the prices and one in a foreign currency. The
//! foreign row is a translation if both rows have the same ex-date and type, and if their payment dates are equal or
//! one is missing. Only the row in the currency of the prices is used. If the foreign row is in the dividend currency, its
//! amount is still the one that is compared with other payments. Two rows in the same currency are never translations of
//! each other.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::payment::Payment;
use super::winner::ObservationStatus;
use crate::metrics::calendar::months_before;
use crate::row::{Flag, Flags};

/// Months before the newest regular row whose rows decide the dividend currency.
const CURRENCY_MONTHS: u32 = 24;

/// Dividend currency of the rows `payments`, which are sorted by ex-date. Without a regular row, it is the currency of the
/// prices.
pub(crate) fn dividend_currency<'a>(payments: &[Payment<'a>], price_currency: &'a str) -> &'a str {
    let regular = || payments.iter().rev().filter(|payment| payment.class.is_regular());
    let Some(newest) = regular().next() else { return price_currency };
    let start = months_before(newest.ex_date, CURRENCY_MONTHS);
    let mut rows: BTreeMap<&'a str, (usize, bool, NaiveDate)> = BTreeMap::new();
    for payment in regular().take_while(|payment| payment.ex_date > start) {
        let currency = payment.observation.record.currency.as_str();
        let found = rows.entry(currency).or_insert((0, currency == price_currency, payment.ex_date));
        found.0 += 1;
    }
    rows.into_iter().max_by_key(|(_, found)| *found).map_or(price_currency, |(currency, _)| currency)
}

/// Drops rows that repeat a payment in another currency. `payments` are sorted by ex-date and type; `currency` is the
/// currency of the prices.
pub(crate) fn drop_translations(
    payments: &mut Vec<Payment<'_>>,
    currency: &str,
    dividend_currency: &str,
    statuses: &mut [ObservationStatus],
    flags: &mut Flags,
) {
    let is_foreign = |payment: &Payment<'_>| payment.observation.record.currency != currency;
    if !payments.iter().any(is_foreign) {
        return;
    }
    for day in payments.chunk_by_mut(|a, b| a.event_key() == b.event_key()) {
        for foreign in 0..day.len() {
            if !is_foreign(&day[foreign]) {
                continue;
            }
            // Two payments of one day are in the order of their amounts in each currency.
            let may_count =
                |other: &usize| !is_foreign(&day[*other]) && may_be_one(&day[*other], &day[foreign]);
            let same_place = |other: &usize| day[*other].ordinal == day[foreign].ordinal;
            let counted = (0..day.len()).filter(may_count).find(same_place);
            let Some(counted) = counted.or_else(|| (0..day.len()).find(may_count)) else { continue };
            statuses[day[foreign].index] = ObservationStatus::Translation(day[counted].index);
            flags.set(Flag::PaymentTranslated);
            if day[foreign].observation.record.currency == dividend_currency {
                day[counted].declared = Some(day[foreign].adjusted);
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
