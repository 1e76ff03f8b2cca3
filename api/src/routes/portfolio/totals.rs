//! Sums of income, market value and cost of a portfolio, by currency and month.
//!
//! Income and value of a portfolio in the requested currency.

use std::collections::BTreeMap;

use chrono::{Datelike, Months, NaiveDate};
use market::decimal::ExactDecimal;
use market::row::StockRow;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::position::{ConvertiblePayment, IncomePayment, IncomeSum, Position, percent_of};
use crate::parameters::Holding;
use crate::routes::conversion::Conversion;

/// Number of months that the income covers.
pub(super) const MONTHS: u32 = 12;

/// Income in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IncomeTotal {
    /// ISO 4217 currency.
    currency: String,
    /// Sum of confirmed and estimated income.
    income: ExactDecimal,
    /// Income from declared or paid dividends.
    confirmed: ExactDecimal,
    /// Income estimated from earlier payments.
    estimated: ExactDecimal,
    /// Number of payments.
    payments: usize,
    /// Market value of the holdings with a price in this currency.
    value: ExactDecimal,
    /// Income as percent of value. Only holdings with price and dividends in this currency count; null if there is no
    /// such holding.
    #[serde(rename = "yield")]
    r#yield: Option<ExactDecimal>,
    /// Mean five-year dividend growth of the holdings, weighted by income, percent per year; null if no growth is
    /// known.
    growth_5y: Option<ExactDecimal>,
    /// Sum of the purchase costs of holdings with a price in this currency; null if the request gives no such cost.
    cost: Option<ExactDecimal>,
    /// Income as percent of cost. A holding counts if the request gives its cost, and if its price and dividends are in
    /// this currency. Null if there is no such holding.
    yield_on_cost: Option<ExactDecimal>,
}

/// Income of one month in one currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IncomeMonth {
    /// First day of the month.
    month: NaiveDate,
    /// ISO 4217 currency.
    currency: String,
    /// Sum of confirmed and estimated income.
    income: ExactDecimal,
    /// Income from declared or paid dividends.
    confirmed: ExactDecimal,
    /// Income estimated from earlier payments.
    estimated: ExactDecimal,
    /// Number of payments.
    payments: usize,
}

/// Sums of income, market value and cost, by currency.
pub(super) fn totals(positions: &[Position], payments: &[IncomePayment]) -> Vec<IncomeTotal> {
    let mut sums: BTreeMap<&str, IncomeSum> = BTreeMap::new();
    for position in positions {
        sums.entry(&position.stock.currency).or_default();
    }
    for payment in payments {
        sums.entry(&payment.currency).or_default().add(payment.amount_status, payment.income.0);
    }
    sums.into_iter().map(|(currency, sum)| total(currency, sum, positions)).collect()
}

pub(super) fn total(currency: &str, sum: IncomeSum, positions: &[Position]) -> IncomeTotal {
    let priced = || positions.iter().filter(|position| position.stock.currency == currency);
    let income_over = |whole: fn(&Position) -> Option<Decimal>| {
        let comparable = priced().filter(|position| position.has_one_currency());
        percent_of_sums(comparable.filter_map(|position| Some((position.income.total(), whole(position)?))))
    };
    let value = priced().filter_map(Position::value).sum();
    let costs: Vec<Decimal> = priced().filter_map(|position| position.holding.cost).collect();
    IncomeTotal {
        currency: currency.to_owned(),
        income: sum.total().into(),
        confirmed: sum.confirmed.into(),
        estimated: sum.estimated.into(),
        payments: sum.payments,
        value: ExactDecimal::amount(value),
        r#yield: income_over(Position::value),
        growth_5y: growth(currency, positions),
        cost: (!costs.is_empty()).then(|| costs.iter().sum::<Decimal>().into()),
        yield_on_cost: income_over(|position| position.holding.cost),
    }
}

/// Adds the first numbers of all pairs, and the second numbers of all pairs. Returns the first sum as a percentage of
/// the second sum.
fn percent_of_sums(pairs: impl Iterator<Item = (Decimal, Decimal)>) -> Option<ExactDecimal> {
    let (mut part, mut whole) = (Decimal::ZERO, Decimal::ZERO);
    for (one_part, one_whole) in pairs {
        part += one_part;
        whole += one_whole;
    }
    percent_of(part, whole)
}

/// Mean dividend growth of the holdings that pay in a currency, weighted by income; `None` if no growth is known.
fn growth(currency: &str, positions: &[Position]) -> Option<ExactDecimal> {
    let (mut weighted, mut weights) = (Decimal::ZERO, Decimal::ZERO);
    for position in positions.iter().filter(|position| position.currency() == currency) {
        if let Some(growth) = position.growth_5y {
            let income = position.income.total();
            weighted = weighted.checked_add(growth.0.checked_mul(income)?)?;
            weights += income;
        }
    }
    weighted.checked_div(weights).map(ExactDecimal::percent)
}

/// Sums of income by currency and month, including months without payments.
pub(super) fn months(from: NaiveDate, payments: &[IncomePayment]) -> Vec<IncomeMonth> {
    let mut by_currency: BTreeMap<&str, [IncomeSum; MONTHS as usize]> = BTreeMap::new();
    for payment in payments {
        let day = payment.payment_date;
        let number = (day.year() - from.year()) * 12 + day.month().cast_signed() - from.month().cast_signed();
        let months = by_currency.entry(&payment.currency).or_default();
        if let Some(month) = usize::try_from(number).ok().and_then(|number| months.get_mut(number)) {
            month.add(payment.amount_status, payment.income.0);
        }
    }
    let mut rows = Vec::new();
    for (currency, months) in by_currency {
        for (number, sum) in (0..MONTHS).zip(months) {
            rows.push(IncomeMonth {
                month: from.checked_add_months(Months::new(number)).unwrap_or(from),
                currency: currency.to_owned(),
                income: sum.total().into(),
                confirmed: sum.confirmed.into(),
                estimated: sum.estimated.into(),
                payments: sum.payments,
            });
        }
    }
    rows
}

/// Income and value in the requested currency. Amounts without an exchange rate are left out and counted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConvertedIncome {
    /// Sums over all payments and holdings. `cost` and `yield_on_cost` are null, because the rate of the purchase is not
    /// known.
    total: IncomeTotal,
    /// Sums by month, twelve months; empty without a converted payment.
    months: Vec<IncomeMonth>,
    /// Number of payments without an exchange rate.
    unconverted: usize,
    /// Number of holdings whose value has no exchange rate.
    unconverted_values: usize,
}

impl ConvertedIncome {
    pub(super) fn of(
        conversion: &Conversion,
        from: NaiveDate,
        positions: &[Position],
        payments: &[ConvertiblePayment],
    ) -> Self {
        let converted: Vec<IncomePayment> = payments.iter().filter_map(convert_payment).collect();
        let positions_in_currency: Vec<Position> =
            positions.iter().map(|position| convert_position(conversion, position, payments)).collect();
        let mut sum = IncomeSum::default();
        for payment in &converted {
            sum.add(payment.amount_status, payment.income.0);
        }
        let values = |positions: &[Position]| positions.iter().filter_map(Position::value).count();
        Self {
            total: total(conversion.currency(), sum, &positions_in_currency),
            months: months(from, &converted),
            unconverted: payments.len() - converted.len(),
            unconverted_values: values(positions) - values(&positions_in_currency),
        }
    }
}

/// The payment in the requested currency; `None` without an exchange rate.
fn convert_payment(payment: &ConvertiblePayment) -> Option<IncomePayment> {
    let converted = payment.converted.clone()??;
    Some(IncomePayment { currency: converted.currency, income: converted.amount, ..payment.payment.clone() })
}

/// The position with its price and the income of `payments` in the requested currency. If its dividends or one of its
/// payments have no exchange rate, the dividends stay in their own currency, so that the position does not count in the
/// yield.
fn convert_position(
    conversion: &Conversion,
    position: &Position,
    payments: &[ConvertiblePayment],
) -> Position {
    let Position { stock, growth_5y, holding, .. } = position;
    let currency = conversion.currency().to_owned();
    let day = stock.price_date;
    let mut are_converted = day.is_none_or(|day| conversion.rate(position.currency(), day).is_some());
    let mut income = IncomeSum::default();
    for payment in payments.iter().filter(|payment| payment.payment.symbol == stock.symbol) {
        match convert_payment(payment) {
            Some(converted) => income.add(converted.amount_status, converted.income.0),
            None => are_converted = false,
        }
    }
    let dividend_currency = if are_converted { &currency } else { position.currency() }.to_owned();
    let price = position.price_rate().and_then(|(currency, day)| {
        let rate = conversion.rate(currency, day)?;
        rate.checked_mul(stock.price?.0).map(ExactDecimal)
    });
    Position {
        stock: StockRow { price, dividend_currency: Some(dividend_currency), currency, ..stock.clone() },
        growth_5y: *growth_5y,
        holding: Holding { cost: None, ..holding.clone() },
        income,
        has_undated_payment: position.has_undated_payment,
    }
}
