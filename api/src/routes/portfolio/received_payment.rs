//! Payments of dividends to the owner of shares: quantity at the ex-date, gross amount, tax and net amount.
//!
//! Calendar file of received dividends: an event for the ex-date and an event for the payment date of each payment.

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
