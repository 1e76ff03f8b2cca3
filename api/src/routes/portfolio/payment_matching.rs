//! Pairs of an expected payment and a received payment of one security in one account, by payment date.
//!
//! Several payments of one day and currency are added up, because a broker may pay them in one amount or in parts.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::row::DividendStatus;
use rust_decimal::Decimal;

use super::received_payment::ReceivedDividend;
use super::transactions::ReceivedRow;

/// Maximum number of days between the two payments of a pair.
const MAX_DAYS: i64 = 10;

/// Expected payment.
pub(super) struct ExpectedPayment {
    /// Payment date; without a payment date, the ex-date.
    pub(super) day: NaiveDate,
    pub(super) currency: String,
    pub(super) gross: Decimal,
    /// Amount per share.
    pub(super) amount: Decimal,
    /// Number of shares; `None` if the payments of the day are on different numbers of shares.
    pub(super) quantity: Option<Decimal>,
    /// Ids of the dividend records.
    pub(super) ids: Vec<String>,
    is_paid: bool,
}

/// Received payment.
pub(super) struct ReceivedPayment {
    pub(super) day: NaiveDate,
    /// Currency of the amount; `None` if it is the currency of the dividends.
    pub(super) currency: Option<String>,
    pub(super) amount: Decimal,
    /// Place of the first row in the body.
    pub(super) place: String,
    /// Number of rows.
    pub(super) rows: u32,
}

/// Expected payment with the received payment of it. One of them may be absent.
pub(super) struct PaymentPair {
    pub(super) account: Option<String>,
    pub(super) symbol: String,
    pub(super) expected: Option<ExpectedPayment>,
    pub(super) received: Option<ReceivedPayment>,
}

impl PaymentPair {
    /// Days from the expected to the received payment; `None` if one of them is absent.
    pub(super) fn days(&self) -> Option<i64> {
        let (expected, received) = (self.expected.as_ref()?, self.received.as_ref()?);
        Some((received.day - expected.day).num_days())
    }

    /// Currencies of the expected and of the received amount, if they differ.
    pub(super) fn currencies(&self) -> Option<(&str, &str)> {
        let (expected, received) = (self.expected.as_ref()?, self.received.as_ref()?);
        let currency = received.currency.as_deref()?;
        (currency != expected.currency).then_some((&expected.currency, currency))
    }

    /// Day of the payment.
    pub(super) fn day(&self) -> Option<NaiveDate> {
        let expected = self.expected.as_ref().map(|payment| payment.day);
        expected.or_else(|| self.received.as_ref().map(|payment| payment.day))
    }
}

/// Payments of one security in one account, by day and currency.
#[derive(Default)]
struct SecurityPayments {
    expected: BTreeMap<(NaiveDate, String), ExpectedPayment>,
    received: BTreeMap<(NaiveDate, Option<String>), ReceivedPayment>,
}

/// Pairs the payments of each security in each account. An expected payment without a received one is left out, unless
/// it was paid between the first and the last received row of its account, and on a day for which `includes` is true.
/// `symbols` has the symbol of each row.
pub(super) fn pair_payments(
    payments: &[ReceivedDividend],
    received: Vec<ReceivedRow>,
    symbols: &[String],
    includes: impl Fn(NaiveDate) -> bool,
) -> Vec<PaymentPair> {
    let mut accounts: BTreeMap<Option<String>, (NaiveDate, NaiveDate)> = BTreeMap::new();
    let mut securities: BTreeMap<(Option<String>, String), SecurityPayments> = BTreeMap::new();
    for row in received {
        let (first, last) = accounts.entry(row.account.clone()).or_insert((row.date, row.date));
        (*first, *last) = (row.date.min(*first), row.date.max(*last));
        let Some(symbol) = symbols.get(row.symbol) else { continue };
        securities.entry((row.account.clone(), symbol.clone())).or_default().add_received(row);
    }
    for payment in payments {
        if payment.status != DividendStatus::Projected && accounts.contains_key(&payment.account) {
            let key = (payment.account.clone(), payment.symbol.clone());
            securities.entry(key).or_default().add_expected(payment);
        }
    }
    let mut pairs = Vec::new();
    for ((account, symbol), payments) in securities {
        let span = accounts.get(&account);
        let is_covered =
            |day| span.is_some_and(|(first, last)| (*first..=*last).contains(&day)) && includes(day);
        for (expected, received) in payments.pair() {
            let is_due = |payment: &ExpectedPayment| payment.is_paid && is_covered(payment.day);
            if received.is_some() || expected.as_ref().is_some_and(is_due) {
                pairs.push(PaymentPair {
                    account: account.clone(),
                    symbol: symbol.clone(),
                    expected,
                    received,
                });
            }
        }
    }
    pairs
}

impl SecurityPayments {
    fn add_received(&mut self, row: ReceivedRow) {
        let ReceivedRow { place, date: day, amount, currency, .. } = row;
        let new =
            || ReceivedPayment { day, currency: currency.clone(), amount: Decimal::ZERO, place, rows: 0 };
        let payment = self.received.entry((day, currency.clone())).or_insert_with(new);
        payment.amount += amount;
        payment.rows += 1;
    }

    fn add_expected(&mut self, payment: &ReceivedDividend) {
        let (day, currency, quantity) = (payment.day(), payment.currency.clone(), payment.quantity.0);
        let new = || ExpectedPayment {
            day,
            currency: currency.clone(),
            gross: Decimal::ZERO,
            amount: Decimal::ZERO,
            quantity: Some(quantity),
            ids: Vec::new(),
            is_paid: true,
        };
        let expected = self.expected.entry((day, currency.clone())).or_insert_with(new);
        expected.gross += payment.gross.0;
        expected.amount += payment.amount.0;
        expected.quantity = expected.quantity.filter(|other| *other == quantity);
        expected.ids.extend(payment.id.clone());
        expected.is_paid &= payment.status == DividendStatus::Paid;
    }

    /// Pairs each received payment with an expected payment of at most [`MAX_DAYS`] earlier or later. The pairs with
    /// the fewest days come first; of these, the pairs of one currency.
    fn pair(self) -> Vec<(Option<ExpectedPayment>, Option<ReceivedPayment>)> {
        let mut expected: Vec<_> = self.expected.into_values().map(Some).collect();
        let mut received: Vec<_> = self.received.into_values().map(Some).collect();
        let mut candidates = Vec::new();
        for (place, payment) in received.iter().enumerate() {
            let Some(payment) = payment else { continue };
            let days = |other: &Option<ExpectedPayment>| {
                other.as_ref().map_or(0, |other| (payment.day - other.day).num_days())
            };
            let first = expected.partition_point(|other| days(other) > MAX_DAYS);
            let near = expected.iter().enumerate().skip(first);
            for (other_place, other) in near.take_while(|(_, other)| days(other) >= -MAX_DAYS) {
                let other_currency = other.as_ref().map(|other| other.currency.as_str());
                let differs = payment.currency.is_some() && payment.currency.as_deref() != other_currency;
                candidates.push((days(other).abs(), differs, other_place, place));
            }
        }
        candidates.sort_unstable();
        let mut pairs = Vec::new();
        for (_, _, expected_place, received_place) in candidates {
            let (Some(one), Some(other)) =
                (expected.get_mut(expected_place), received.get_mut(received_place))
            else {
                continue;
            };
            if one.is_some() && other.is_some() {
                pairs.push((one.take(), other.take()));
            }
        }
        pairs.extend(expected.into_iter().flatten().map(|payment| (Some(payment), None)));
        pairs.extend(received.into_iter().flatten().map(|payment| (None, Some(payment))));
        pairs
    }
}
