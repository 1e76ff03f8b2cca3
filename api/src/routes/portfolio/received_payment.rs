//! Payments of dividends to the owner of shares: quantity at the ex-date, gross amount, tax and net amount.
//!
//! Pairs of an expected payment and a received payment of one security in one account, by payment date. Several payments
//! of one day and currency are added up, because a broker may pay them in one amount or in parts.
//!
//! Calendar file of received dividends: an event for the ex-date and an event for the payment date of each payment.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::event::DividendType;
use market::row::DividendStatus;
use market::table_row;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::distribution_events::{DistributionEvents, tax_on};
use super::share_count::AccountSecurity;
use super::transactions::ReceivedRow;
use crate::read::changes::DividendRevisions;
use crate::render::icalendar::{CalendarFile, CalendarSource, CalendarWriter, Event, event_id};
use crate::routes::conversion::{Conversion, Converted};

/// Maximum gross amount. The sum of all payments of a response then fits into a decimal.
const MAX_GROSS: i64 = 1_000_000_000_000_000_000;

table_row! {
    /// Payment of one dividend to one account.
    pub struct ReceivedDividend {
        /// Account of the transactions; null without an account.
        "account" account: Option<String>,
        /// Canonical ticker.
        "symbol" symbol: String,
        /// First day on which a buyer does not receive the dividend.
        "ex_date" ex_date: NaiveDate,
        /// Payment date; an estimate for projected payments.
        "payment_date" payment_date: Option<NaiveDate>,
        /// Number of shares before the ex-date, on the share basis of the ex-date. Negative for shares sold short.
        "quantity" quantity: ExactDecimal,
        /// Amount per share as declared; an estimate for projected payments.
        "amount" amount: ExactDecimal,
        /// quantity x amount.
        "gross" gross: ExactDecimal,
        /// ISO 4217 currency of amount, gross, tax and net.
        "currency" currency: String,
        /// Dividend type as declared.
        "type" r#type: DividendType,
        /// Status of the dividend on the market's as-of date.
        "status" status: DividendStatus,
        /// Id of the dividend record; null for projected payments.
        "id" id: Option<String>,
        /// Tax at the rates of the request; null without the parameter `tax`.
        "tax" tax: Option<ExactDecimal>,
        /// gross - tax; null without the parameter `tax`.
        "net" net: Option<ExactDecimal>,
    }
}

/// Payment of one dividend to one account, with its gross amount in the requested currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConvertibleReceived {
    #[serde(flatten)]
    pub(super) payment: ReceivedDividend,
    /// Gross amount in the requested currency; null without an exchange rate. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Converted>)]
    pub(super) converted: Option<Option<Converted>>,
}

impl DistributionEvents {
    /// Payments to an account. `None` if an amount exceeds [`MAX_GROSS`].
    pub(super) fn payments_to(&self, owned: &AccountSecurity) -> Option<Vec<ReceivedDividend>> {
        let days = self.dividends.iter().map(|dividend| dividend.ex_date);
        let mut payments = Vec::new();
        for (dividend, quantity) in self.dividends.iter().zip(owned.shares_before(&self.splits, days)) {
            if quantity.is_zero() {
                continue;
            }
            let gross = ExactDecimal::amount(dividend.amount.0.checked_mul(quantity)?);
            if gross.0.abs() > Decimal::from(MAX_GROSS) {
                return None;
            }
            let tax = self.tax_rate.map(|percent| tax_on(gross.0, percent, &dividend.currency));
            payments.push(ReceivedDividend {
                account: owned.account.clone(),
                symbol: dividend.symbol.clone(),
                ex_date: dividend.ex_date,
                payment_date: dividend.payment_date,
                quantity: quantity.into(),
                amount: dividend.amount,
                gross,
                currency: dividend.currency.clone(),
                r#type: dividend.r#type,
                status: dividend.status,
                id: dividend.id.clone(),
                tax: tax.map(ExactDecimal::from),
                net: tax.map(|tax| (gross.0 - tax).into()),
            });
        }
        Some(payments)
    }

    /// Spin-offs before whose ex-date the account has shares.
    pub(super) fn spin_offs_to(&self, owned: &AccountSecurity) -> Vec<NaiveDate> {
        let shares = owned.shares_before(&self.splits, self.spin_offs.iter().copied());
        let with_shares = self.spin_offs.iter().zip(shares).filter(|(_, shares)| !shares.is_zero());
        with_shares.map(|(day, _)| *day).collect()
    }
}

impl ReceivedDividend {
    /// Payment date; without a payment date, the ex-date.
    pub(super) fn day(&self) -> NaiveDate {
        self.payment_date.unwrap_or(self.ex_date)
    }

    /// The payment in the requested currency; `None` without an exchange rate.
    pub(super) fn convert(&self, conversion: &Conversion) -> Option<Self> {
        let convert = |amount: ExactDecimal| {
            let converted = conversion.convert_payment(amount.0, &self.currency, self.ex_date)?;
            Some(converted.amount)
        };
        let (gross, tax) = (convert(self.gross)?, self.tax.and_then(convert));
        let net = tax.map(|tax| (gross.0 - tax.0).into());
        Some(Self { gross, tax, net, currency: conversion.currency().to_owned(), ..self.clone() })
    }
}

/// Writes the events of payments. The ids of a payment's events contain the account, because each account has its own
/// payment of a dividend.
pub(super) fn write_calendar(
    payments: &[&ReceivedDividend],
    revisions: &DividendRevisions,
    source: &CalendarSource,
) -> CalendarFile {
    let mut writer = CalendarWriter::new("Dividends received", &source.host);
    for payment in payments {
        let ReceivedDividend { symbol, quantity, amount, gross, currency, ex_date, .. } = payment;
        let (status, hint) = match payment.status {
            DividendStatus::Projected => ("TENTATIVE", " (estimated)"),
            _ => ("CONFIRMED", ""),
        };
        let owner = payment.account.as_deref().map(|account| format!(", {account}")).unwrap_or_default();
        let net = payment.net.map(|net| format!(", {net} {currency} after tax")).unwrap_or_default();
        let sum = format!("{gross} {currency} for {quantity} shares{owner}{hint}");
        let description = format!("{amount} {currency} a share, {}{net}", payment.status);
        let account = payment.account.as_deref().map(|account| format!("-{account}")).unwrap_or_default();
        let id = format!("{}-received{account}", event_id(payment.id.as_deref(), symbol, ex_date));
        let days = [(Some(*ex_date), "ex", "ex-dividend"), (payment.payment_date, "payment", "pays")];
        for (day, suffix, verb) in days {
            let Some(day) = day else { continue };
            writer.event(&Event {
                id: &format!("{id}-{suffix}"),
                day,
                sequence: revisions.number(symbol, payment.id.as_deref()).saturating_add(source.edits),
                status,
                changed_at: "",
                summary: &format!("{symbol} {verb} {sum}"),
                description: &description,
            });
        }
    }
    writer.finish()
}

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
