//! Rows that only their neighbours show to be wrong (R28, R30): held back, visible, and back when neighbours change.
//!
//! - `amount_exceeds_price`: cash of at least the close before the ex-date; a liquidation or a spin-off may.
//! - `amount_outlier`: a regular amount of at least 10 times the median of the four regular ones before it, in the same
//!   currency on one share basis (pence sent as pounds). Held rows are nobody's neighbours, so a run of wrong amounts
//!   stays out until an operator decides; with fewer than four before it, nothing is held.

use std::collections::VecDeque;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::dividends::{Basics, Payment};
use super::version::{Fate, Held};
use crate::event::{Dividend, DividendType};
use crate::measure::arithmetic::median;
use crate::measure::class::Class;

/// Reason code of cash of at least the close before; such a row puts no factor on prices either (R11).
pub(crate) const EXCEEDS_PRICE: &str = "amount_exceeds_price";
/// Regular amounts a new one is compared with.
const COMPARED: usize = 4;

/// The prices around a distribution.
pub(crate) struct Neighbours<'a> {
    /// The last raw close before a day, on that day's share basis.
    pub close_before: &'a dyn Fn(NaiveDate) -> Option<Decimal>,
    /// Currency of prices.
    pub currency: &'a str,
}

impl Neighbours<'_> {
    /// The close a distribution is measured by, when it is in the same currency.
    pub(crate) fn close_for(&self, record: &Dividend, day: NaiveDate) -> Option<Decimal> {
        if record.currency == self.currency { (self.close_before)(day) } else { None }
    }
}

/// Takes contradicted payments out of a list sorted by ex-date.
pub(crate) fn hold_outliers(
    payments: &mut Vec<Payment<'_>>,
    basics: &Basics<'_>,
    fates: &mut [Fate],
    held: &mut Vec<Held>,
) {
    let mut recent: Vec<(&str, VecDeque<Decimal>)> = Vec::new();
    payments.retain(|payment| {
        let fault =
            exceeds_price(payment, basics).or_else(|| outlier(payment, neighbours_of(&recent, payment)));
        if let Some((reason, message)) = fault {
            fates[payment.index] = Fate::Quarantined(reason);
            held.push(Held { index: payment.index, reason, message });
            return false;
        }
        if payment.class.is_regular() {
            remember(&mut recent, payment);
        }
        true
    });
}

fn exceeds_price(payment: &Payment<'_>, basics: &Basics<'_>) -> Option<(&'static str, String)> {
    let record = &payment.observation.record;
    let exempt =
        record.r#type == DividendType::Liquidation || matches!(payment.class, Class::SpinOff | Class::Stock);
    if exempt {
        return None;
    }
    let close = basics.neighbours.close_for(record, payment.ex_date)?;
    (payment.amount >= close).then(|| {
        (EXCEEDS_PRICE, format!("{} a share was paid on a share worth {close}", payment.amount.normalize()))
    })
}

fn neighbours_of<'a>(
    recent: &'a [(&str, VecDeque<Decimal>)],
    payment: &Payment<'_>,
) -> Option<&'a VecDeque<Decimal>> {
    let currency = payment.observation.record.currency.as_str();
    recent.iter().find(|(known, _)| *known == currency).map(|(_, amounts)| amounts)
}

fn outlier(payment: &Payment<'_>, before: Option<&VecDeque<Decimal>>) -> Option<(&'static str, String)> {
    let before = before.filter(|before| payment.class.is_regular() && before.len() == COMPARED)?;
    // The median of four is at least the smallest, so most amounts need no sorting.
    let least = before.iter().min()?;
    let limit = |value: Decimal| value.saturating_mul(Decimal::TEN);
    if payment.adjusted < limit(*least) {
        return None;
    }
    let median = median(before.iter().copied().collect())?;
    (payment.adjusted >= limit(median)).then(|| {
        let message = format!(
            "{} a share is at least 10 times the median {} of the four regular amounts before it",
            payment.adjusted.normalize(),
            median.normalize()
        );
        ("amount_outlier", message)
    })
}

fn remember<'a>(recent: &mut Vec<(&'a str, VecDeque<Decimal>)>, payment: &Payment<'a>) {
    let currency = payment.observation.record.currency.as_str();
    let position = recent.iter().position(|(known, _)| *known == currency).unwrap_or_else(|| {
        recent.push((currency, VecDeque::with_capacity(COMPARED + 1)));
        recent.len() - 1
    });
    let amounts = &mut recent[position].1;
    amounts.push_back(payment.adjusted);
    if amounts.len() > COMPARED {
        amounts.pop_front();
    }
}
