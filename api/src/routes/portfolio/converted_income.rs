//! Income and value of a portfolio in the requested currency.

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::row::StockRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::position::{ConvertiblePayment, IncomePayment, IncomeSum, Position};
use super::totals::{IncomeMonth, IncomeTotal, months, total};
use crate::parameters::Holding;
use crate::routes::conversion::Conversion;

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
            positions.iter().map(|position| convert_position(conversion, position, &converted)).collect();
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

/// The position with its price and the income of `payments` in the requested currency.
fn convert_position(conversion: &Conversion, position: &Position, payments: &[IncomePayment]) -> Position {
    let Position { stock, growth_5y, holding, .. } = position;
    let mut income = IncomeSum::default();
    for payment in payments.iter().filter(|payment| payment.symbol == stock.symbol) {
        income.add(payment.amount_status, payment.income.0);
    }
    let price = position.price_rate().and_then(|(currency, day)| {
        let rate = conversion.rate(currency, day)?;
        rate.checked_mul(stock.price?.0).map(ExactDecimal)
    });
    let currency = conversion.currency().to_owned();
    Position {
        stock: StockRow { price, dividend_currency: Some(currency.clone()), currency, ..stock.clone() },
        growth_5y: *growth_5y,
        holding: Holding { cost: None, ..holding.clone() },
        income,
        has_undated_payment: position.has_undated_payment,
    }
}
