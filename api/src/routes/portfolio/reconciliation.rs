//! Comparison of received dividends with expected payments, and the reasons why they differ.
//!
//! A reason is a guess from the amounts. The first of these that fits is the reason: exchange rate for amounts in two
//! currencies; else payment date, tax rate, number of shares. The rules are fixed, so equal requests get equal
//! reasons.

use chrono::NaiveDate;
use market::decimal::{ExactDecimal, round};
use market::text_enum;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::distribution_events::{minor_places, tax_on};
use super::received_payment::{ExpectedPayment, PaymentPair, ReceivedPayment};

/// Lowest and highest tax rate that is a reason without a rate of the request, in percent. It has whole or half
/// percents.
const USUAL_TAX: [i64; 2] = [5, 40];
/// Step of the most usual tax rates, in percent.
const TAX_STEP: i64 = 5;

text_enum! {
    /// Result of the comparison of an expected payment with a received one.
    pub enum ReconciliationResult {
        /// The gross amount was received on the payment date. A difference below the minor unit of the currency is
        /// ignored.
        Matched = "matched",
        /// The payment was expected, but no row within ten days has it.
        Missing = "missing",
        /// No payment was expected within ten days.
        Extra = "extra",
        /// The amount or the date differs.
        Different = "different",
    }
}

text_enum! {
    /// Probable reason for a difference.
    pub enum DifferenceReason {
        /// The amount is the gross amount after tax: at the rate of the parameter `tax`, or at 5 to 40 percent in
        /// steps of a half. If several rates fit a small amount, a multiple of 5 is preferred, then a whole percent.
        TaxRate = "tax_rate",
        /// The amount is in another currency, and its exchange rate is within 3 percent of the rate of the payment
        /// date. If `tax_rate` is not null, this tax was deducted too.
        ExchangeRate = "exchange_rate",
        /// The gross amount was received up to ten days before or after the payment date.
        Date = "date",
        /// The amount is that of another whole number of shares.
        Quantity = "quantity",
    }
}

/// Comparison of an expected payment with a received one. Payments of one account, security, day and currency are
/// added up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reconciliation {
    /// Account; null without an account.
    account: Option<String>,
    /// Canonical ticker; the symbol of the request if it is unknown.
    symbol: String,
    /// Result of the comparison.
    result: ReconciliationResult,
    /// Probable reason; null if none is known, and for other results than `different`.
    reason: Option<DifferenceReason>,
    /// Ids of the expected dividend records; empty for `extra`.
    ids: Vec<String>,
    /// Payment date of the expected payment; without a payment date, the ex-date. Null for `extra`.
    payment_date: Option<NaiveDate>,
    /// Expected gross amount; null for `extra`.
    expected: Option<ExactDecimal>,
    /// ISO 4217 currency of the expected amount; null for `extra`.
    expected_currency: Option<String>,
    /// Date of the received row; null for `missing`.
    received_date: Option<NaiveDate>,
    /// Received amount; null for `missing`.
    received: Option<ExactDecimal>,
    /// ISO 4217 currency of the received amount; null for `missing`, and if an `extra` row has no currency.
    received_currency: Option<String>,
    /// Place of the first received row in the body: `received[3]`, or `line 5` of a CSV. Null for `missing`.
    place: Option<String>,
    /// Days from the payment date to the received date, negative for an early payment. Null for `missing` and `extra`.
    days: Option<i64>,
    /// Tax rate that fits, in percent; null if the reason is not tax.
    tax_rate: Option<ExactDecimal>,
    /// Exchange rate that fits: units of the received currency for one unit of the expected currency. Null for other
    /// reasons.
    exchange_rate: Option<ExactDecimal>,
    /// Number of shares that fits; null for other reasons.
    quantity: Option<ExactDecimal>,
}

/// Reason for a difference, with the figure that fits.
#[derive(Default)]
struct Difference {
    reason: Option<DifferenceReason>,
    tax_rate: Option<Decimal>,
    exchange_rate: Option<Decimal>,
    quantity: Option<Decimal>,
}

/// Compares the payments of each pair. `tax_rate` has the rate of the request for a symbol, in percent. `rate` has the
/// exchange rate from one currency to another on a day.
pub(super) fn reconcile(
    mut pairs: Vec<PaymentPair>,
    tax_rate: impl Fn(&str) -> Option<Decimal>,
    rate: impl Fn(&str, &str, NaiveDate) -> Option<Decimal>,
) -> Vec<Reconciliation> {
    pairs.sort_by(|one, other| {
        (one.day(), &one.symbol, &one.account).cmp(&(other.day(), &other.symbol, &other.account))
    });
    let compare = |pair: PaymentPair| {
        let tax = tax_rate(&pair.symbol).filter(|rate| !rate.is_zero());
        let rate = pair.currencies().zip(pair.day()).and_then(|((from, to), day)| rate(from, to, day));
        Reconciliation::of(pair, tax, rate)
    };
    pairs.into_iter().map(compare).collect()
}

impl Reconciliation {
    fn of(pair: PaymentPair, tax: Option<Decimal>, rate: Option<Decimal>) -> Self {
        let days = pair.days();
        let (result, difference) = match (&pair.expected, &pair.received) {
            (Some(expected), Some(received)) => match Difference::find(expected, received, tax, rate) {
                Some(difference) => (ReconciliationResult::Different, difference),
                None => (ReconciliationResult::Matched, Difference::default()),
            },
            (Some(_), None) => (ReconciliationResult::Missing, Difference::default()),
            (None, _) => (ReconciliationResult::Extra, Difference::default()),
        };
        let PaymentPair { account, symbol, expected, received } = pair;
        let own_currency = received.as_ref().and_then(|received| received.currency.clone());
        let expected_currency = expected.as_ref().map(|expected| expected.currency.clone());
        let of_expected = expected_currency.clone().filter(|_| received.is_some());
        Self {
            account,
            symbol,
            result,
            reason: difference.reason,
            payment_date: expected.as_ref().map(|expected| expected.day),
            expected: expected.as_ref().map(|expected| expected.gross.into()),
            expected_currency,
            ids: expected.map(|expected| expected.ids).unwrap_or_default(),
            received_date: received.as_ref().map(|received| received.day),
            received: received.as_ref().map(|received| received.amount.into()),
            received_currency: own_currency.or(of_expected),
            place: received.map(|received| received.place),
            days,
            tax_rate: difference.tax_rate.map(ExactDecimal::from),
            exchange_rate: difference.exchange_rate.map(ExactDecimal::from),
            quantity: difference.quantity.map(ExactDecimal::from),
        }
    }
}

impl Difference {
    /// Difference between two payments; `None` if they are equal.
    fn find(
        expected: &ExpectedPayment,
        received: &ReceivedPayment,
        tax: Option<Decimal>,
        rate: Option<Decimal>,
    ) -> Option<Self> {
        let currency = received.currency.as_ref().unwrap_or(&expected.currency);
        let minor_unit = Decimal::new(1, minor_places(currency)) * Decimal::from(received.rows);
        if *currency != expected.currency {
            let found =
                rate.and_then(|rate| Self::of_exchange(expected, received.amount, tax, rate, minor_unit));
            return Some(found.unwrap_or_default());
        }
        let is_received = |amount: Decimal| (amount - received.amount).abs() < minor_unit;
        if is_received(expected.gross) {
            let is_late = received.day != expected.day;
            return is_late.then(|| Self { reason: Some(DifferenceReason::Date), ..Self::default() });
        }
        let rates = tax_rates(expected.gross, received.amount, tax);
        let mut rates = rates.into_iter();
        if let Some(rate) =
            rates.find(|rate| is_received(expected.gross - tax_on(expected.gross, *rate, currency)))
        {
            return Some(Self {
                reason: Some(DifferenceReason::TaxRate),
                tax_rate: Some(rate),
                ..Self::default()
            });
        }
        let quantity = received.amount.checked_div(expected.amount).map(|quantity| round(quantity, 0));
        // Below this amount per share, each amount is that of a whole number of shares.
        let is_certain = expected.amount.abs() > minor_unit + minor_unit;
        let fits = |quantity: &Decimal| {
            let amount = quantity.checked_mul(expected.amount);
            *quantity > Decimal::ZERO && is_certain && amount.is_some_and(is_received)
        };
        let quantity = quantity
            .filter(|quantity| expected.quantity.is_some_and(|other| other != *quantity) && fits(quantity));
        Some(Self { reason: quantity.map(|_| DifferenceReason::Quantity), quantity, ..Self::default() })
    }

    /// Exchange rate that fits, and the tax that fits with it.
    fn of_exchange(
        expected: &ExpectedPayment,
        received: Decimal,
        tax: Option<Decimal>,
        rate: Decimal,
        minor_unit: Decimal,
    ) -> Option<Self> {
        let untaxed = expected.gross.checked_mul(rate)?;
        let nearest = tax_rates(untaxed, received, tax);
        [Decimal::ZERO].into_iter().chain(nearest).find_map(|tax| {
            let part = Decimal::ONE - tax / Decimal::ONE_HUNDRED;
            let amount = untaxed.checked_mul(part)?;
            let is_near = (amount - received).abs() <= amount.abs() * Decimal::new(3, 2) + minor_unit;
            let exchange_rate =
                received.checked_div(expected.gross.checked_mul(part)?).filter(|_| is_near)?;
            Some(Self {
                reason: Some(DifferenceReason::ExchangeRate),
                tax_rate: Some(tax).filter(|tax| !tax.is_zero()),
                exchange_rate: Some(ExactDecimal::amount(exchange_rate).0),
                quantity: None,
            })
        })
    }
}

/// Tax rates that may explain a received amount, the most likely first: that of the request, then the nearest usual
/// rates.
fn tax_rates(gross: Decimal, received: Decimal, of_request: Option<Decimal>) -> Vec<Decimal> {
    let percent = received.checked_div(gross).map(|part| (Decimal::ONE - part) * Decimal::ONE_HUNDRED);
    let nearest = |percent: Decimal| {
        let (step, half) = (Decimal::from(TAX_STEP), Decimal::new(5, 1));
        [step, Decimal::ONE, half].map(|step| round(percent / step, 0) * step)
    };
    let [lowest, highest] = USUAL_TAX.map(Decimal::from);
    let usual =
        percent.filter(|percent| percent.abs() < Decimal::ONE_HUNDRED).map(nearest).into_iter().flatten();
    of_request.into_iter().chain(usual.filter(|rate| (lowest..=highest).contains(rate))).collect()
}
