//! Sums of received dividends by currency, month, year, account and symbol. Two currencies are never added.
//!
//! Yield on cost: dividends of the last twelve months as percent of the average cost of the remaining shares.

use std::collections::{BTreeMap, HashMap};

use chrono::{Datelike, Months, NaiveDate};
use market::decimal::ExactDecimal;
use market::row::DividendStatus;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::distribution_events::DistributionEvents;
use super::position::percent_of;
use super::received_payment::ReceivedDividend;
use super::share_count::AccountSecurity;

/// Sums of payments in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedSum {
    /// ISO 4217 currency.
    currency: String,
    /// Sum of gross amounts.
    gross: ExactDecimal,
    /// Sum of taxes; null without the parameter `tax`.
    tax: Option<ExactDecimal>,
    /// gross - tax; null without the parameter `tax`.
    net: Option<ExactDecimal>,
    /// Part of gross from paid dividends.
    received: ExactDecimal,
    /// Part of gross from projected payments.
    projected: ExactDecimal,
    /// Number of payments.
    payments: usize,
}

/// Sums of one month in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedMonth {
    /// First day of the month.
    month: NaiveDate,
    #[serde(flatten)]
    sum: ReceivedSum,
}

/// Sums of one calendar year in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedYear {
    /// Calendar year.
    year: i32,
    #[serde(flatten)]
    sum: ReceivedSum,
}

/// Sums of one account in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedAccount {
    /// Account; null for transactions without an account.
    account: Option<String>,
    #[serde(flatten)]
    sum: ReceivedSum,
}

/// Sums of one security in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedSymbol {
    /// Canonical ticker.
    pub(super) symbol: String,
    /// Gross amount of the last twelve months as percent of the average cost of the shares that remain today. Null if a
    /// remaining share has no price in the currency of the dividends, or if no share remains.
    pub(super) yield_on_cost: Option<ExactDecimal>,
    #[serde(flatten)]
    sum: ReceivedSum,
}

impl ReceivedSymbol {
    pub(super) fn currency(&self) -> &str {
        &self.sum.currency
    }
}

/// Sums of all payments in the requested currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedConverted {
    #[serde(flatten)]
    sum: ReceivedSum,
    /// Sums by month. Months without a payment are left out.
    months: Vec<ReceivedMonth>,
    /// Sums by calendar year.
    years: Vec<ReceivedYear>,
    /// Number of payments without an exchange rate. They are left out of the sums.
    unconverted: usize,
}

/// Sums of the payments of a response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedTotals {
    /// Sums by currency.
    currencies: Vec<ReceivedSum>,
    /// Sums by month and currency. Months without a payment are left out.
    months: Vec<ReceivedMonth>,
    /// Sums by calendar year and currency.
    years: Vec<ReceivedYear>,
    /// Sums by account and currency.
    accounts: Vec<ReceivedAccount>,
    /// Sums by symbol and currency.
    pub(super) symbols: Vec<ReceivedSymbol>,
    /// Sums in the requested currency. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) converted: Option<ReceivedConverted>,
}

impl ReceivedTotals {
    pub(super) fn of<'a>(payments: impl Iterator<Item = &'a ReceivedDividend> + Clone) -> Self {
        let by_currency = group(payments.clone(), |_| ());
        let by_account = group(payments.clone(), |payment| payment.account.clone());
        let by_symbol = group(payments.clone(), |payment| payment.symbol.clone());
        Self {
            currencies: by_currency.map(|((), sum)| sum).collect(),
            months: months(payments.clone()),
            years: years(payments.clone()),
            accounts: by_account.map(|(account, sum)| ReceivedAccount { account, sum }).collect(),
            symbols: by_symbol
                .map(|(symbol, sum)| ReceivedSymbol { symbol, yield_on_cost: None, sum })
                .collect(),
            converted: None,
        }
    }
}

fn months<'a>(payments: impl Iterator<Item = &'a ReceivedDividend>) -> Vec<ReceivedMonth> {
    let sums = group(payments, |payment| payment.day().with_day(1).unwrap_or(payment.day()));
    sums.map(|(month, sum)| ReceivedMonth { month, sum }).collect()
}

fn years<'a>(payments: impl Iterator<Item = &'a ReceivedDividend>) -> Vec<ReceivedYear> {
    let sums = group(payments, |payment| payment.day().year());
    sums.map(|(year, sum)| ReceivedYear { year, sum }).collect()
}

impl ReceivedConverted {
    /// Sums of payments that are in the requested currency.
    pub(super) fn of(currency: &str, payments: &[ReceivedDividend], unconverted: usize) -> Self {
        let mut sum = ReceivedSum::zero(currency);
        payments.iter().for_each(|payment| sum.add(payment));
        Self { sum, months: months(payments.iter()), years: years(payments.iter()), unconverted }
    }
}

impl ReceivedSum {
    fn zero(currency: &str) -> Self {
        let zero = ExactDecimal::default();
        Self {
            currency: currency.to_owned(),
            gross: zero,
            tax: None,
            net: None,
            received: zero,
            projected: zero,
            payments: 0,
        }
    }

    fn add(&mut self, payment: &ReceivedDividend) {
        let plus = |sum: ExactDecimal, added: ExactDecimal| ExactDecimal::from(sum.0 + added.0);
        self.gross = plus(self.gross, payment.gross);
        self.tax = payment.tax.map(|tax| plus(self.tax.unwrap_or_default(), tax)).or(self.tax);
        self.net = payment.net.map(|net| plus(self.net.unwrap_or_default(), net)).or(self.net);
        match payment.status {
            DividendStatus::Paid => self.received = plus(self.received, payment.gross),
            DividendStatus::Projected => self.projected = plus(self.projected, payment.gross),
            _ => {}
        }
        self.payments += 1;
    }
}

/// Sums of payments with the same key and currency, in ascending order.
fn group<'a, K: Ord>(
    payments: impl Iterator<Item = &'a ReceivedDividend>,
    key: impl Fn(&ReceivedDividend) -> K,
) -> impl Iterator<Item = (K, ReceivedSum)> {
    let mut sums: BTreeMap<(K, &str), ReceivedSum> = BTreeMap::new();
    for payment in payments {
        let currency = payment.currency.as_str();
        let sum = sums.entry((key(payment), currency)).or_insert_with(|| ReceivedSum::zero(currency));
        sum.add(payment);
    }
    sums.into_iter().map(|((key, _), sum)| (key, sum))
}

/// Gross amounts by symbol and currency.
fn gross_by_symbol<'a>(
    payments: impl Iterator<Item = &'a ReceivedDividend>,
) -> BTreeMap<(String, String), Decimal> {
    let sums = group(payments, |payment| payment.symbol.clone());
    sums.map(|(symbol, sum)| ((symbol, sum.currency), sum.gross.0)).collect()
}

/// First day of the twelve months that end on a day.
pub(super) fn first_of_twelve_months(day: NaiveDate) -> NaiveDate {
    day.checked_sub_months(Months::new(12)).and_then(|before| before.succ_opt()).unwrap_or(day)
}

/// Sets the yield on cost of each symbol. `payments` has all payments of the twelve months until `today`.
pub(super) fn set_yields_on_cost(
    symbols: &mut [ReceivedSymbol],
    payments: &[ReceivedDividend],
    owned: &[AccountSecurity],
    events: &HashMap<String, DistributionEvents>,
    today: NaiveDate,
) {
    let trailing = first_of_twelve_months(today)..=today;
    let is_trailing = |payment: &&ReceivedDividend| {
        payment.status != DividendStatus::Projected && trailing.contains(&payment.day())
    };
    let income = gross_by_symbol(payments.iter().filter(is_trailing));
    let mut accounts: HashMap<&str, Vec<&AccountSecurity>> = HashMap::new();
    for one in owned {
        accounts.entry(&one.symbol).or_default().push(one);
    }
    for row in symbols {
        let accounts = accounts.get(row.symbol.as_str()).into_iter().flatten();
        let Some(DistributionEvents { splits, .. }) = events.get(&row.symbol) else { continue };
        let costs = accounts.map(|one| one.average_cost(splits, row.currency(), today));
        let cost: Option<Decimal> = costs.sum();
        let key = (row.symbol.clone(), row.currency().to_owned());
        let income = income.get(&key).copied().unwrap_or_default();
        row.yield_on_cost = cost.and_then(|cost| percent_of(income, cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twelve_months_end_today() {
        let day = |text: &str| text.parse::<NaiveDate>().expect("a date");
        assert_eq!(first_of_twelve_months(day("2024-06-17")), day("2023-06-18"));
    }
}
