//! Payment of one dividend to one holding.

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::event::DividendType;
use market::row::{AmountStatus, DividendRow};
use market::table_row;
use rust_decimal::Decimal;

use super::position::Position;

table_row! {
    /// Payment of one dividend to one holding.
    pub struct IncomePayment {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Id of the dividend record; null for an estimate.
        "id" id: Option<String>,
        /// First day on which a buyer does not receive the dividend.
        "ex_date" ex_date: NaiveDate,
        /// Payment date; an estimate for an estimated payment.
        "payment_date" payment_date: NaiveDate,
        /// Dividend type as declared.
        "type" r#type: DividendType,
        /// Amount per share, adjusted for splits after the ex-date.
        "amount" amount: ExactDecimal,
        /// ISO 4217 currency of amount and income.
        "currency" currency: String,
        /// Shares of the holding.
        "shares" shares: ExactDecimal,
        /// Income from the payment: amount x shares.
        "income" income: ExactDecimal,
        /// Origin of the amount: declared or estimated.
        "amount_status" amount_status: AmountStatus,
    }
}

impl IncomePayment {
    /// Creates the payment of a dividend to the holding of `position`, and adds it to the income of `position`. If the
    /// dividend has no payment date, the result is `None` and `has_undated_payment` is set.
    pub(super) fn of(position: &mut Position, dividend: DividendRow) -> Option<Self> {
        let Some(payment_date) = dividend.payment_date else {
            position.has_undated_payment = true;
            return None;
        };
        let shares = position.holding.shares;
        let income = dividend.adjusted_amount.0.checked_mul(shares).unwrap_or(Decimal::ZERO);
        let income = ExactDecimal::amount(income);
        position.income.add(dividend.amount_status, income.0);
        Some(Self {
            symbol: dividend.symbol,
            id: dividend.id,
            ex_date: dividend.ex_date,
            payment_date,
            r#type: dividend.r#type,
            amount: dividend.adjusted_amount,
            currency: dividend.currency,
            shares: shares.into(),
            income,
            amount_status: dividend.amount_status,
        })
    }
}
