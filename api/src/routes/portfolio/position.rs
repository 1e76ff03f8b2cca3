//! Position of a portfolio: a security with its holding, its payments and its income.

use std::collections::HashSet;

use chrono::NaiveDate;
use deadpool_postgres::Transaction;
use market::decimal::ExactDecimal;
use market::event::DividendType;
use market::row::{AmountStatus, DividendRow, Stock, StockRow};
use market::{table_row, text_enum};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::parameters::{Holding, HoldingList};
use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};
use crate::routes::conversion::Converted;

pub(super) const HOLDINGS: &str = include_str!("../../../queries/portfolio/holdings.sql");

text_enum! {
    /// Reason for missing income or a missing figure.
    pub enum GapReason {
        /// No security has the symbol.
        UnknownSymbol = "unknown_symbol",
        /// It is unknown whether the security pays dividends, because the data may be incomplete (R38).
        DividendsUnknown = "dividends_unknown",
        /// The security pays dividends, but none has a declared payment date in the twelve months, and none can be
        /// estimated.
        NotEstimated = "not_estimated",
        /// A declared dividend has no payment date.
        NoPaymentDate = "no_payment_date",
        /// The security no longer trades.
        Delisted = "delisted",
        /// The security has no price, so it has no value and no yield.
        NoPrice = "no_price",
        /// Prices and dividends are in different currencies, and no exchange rate is known, so no yield exists (R4).
        CurrencyMismatch = "currency_mismatch",
    }
}

/// One reason why income or a figure of a symbol is missing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IncomeGap {
    /// Requested symbol if it is unknown, otherwise the canonical ticker.
    symbol: String,
    /// Reason for the gap.
    reason: GapReason,
}

impl IncomeGap {
    pub(super) fn unknown(symbol: &str) -> Self {
        Self { symbol: symbol.to_owned(), reason: GapReason::UnknownSymbol }
    }

    /// Gap of an active security whose dividends are unknown; `None` for any other security.
    pub(super) fn of_unknown_dividends(stock: &StockRow) -> Option<Self> {
        let is_unknown = stock.is_active && stock.pays_dividend.is_none();
        is_unknown.then(|| Self { symbol: stock.symbol.clone(), reason: GapReason::DividendsUnknown })
    }
}

/// Sums of confirmed and of estimated income, and the number of payments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IncomeSum {
    pub(super) confirmed: Decimal,
    pub(super) estimated: Decimal,
    pub(super) payments: usize,
}

impl IncomeSum {
    pub(super) fn add(&mut self, status: AmountStatus, income: Decimal) {
        match status {
            AmountStatus::Declared => self.confirmed += income,
            AmountStatus::Estimated => self.estimated += income,
        }
        self.payments += 1;
    }

    pub(super) fn total(self) -> Decimal {
        self.confirmed + self.estimated
    }
}

/// Holding of a security in the portfolio, with its income.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) stock: StockRow,
    pub(super) growth_5y: Option<ExactDecimal>,
    pub(super) holding: Holding,
    pub(super) income: IncomeSum,
    /// True if a declared dividend in the twelve months of the response has no payment date.
    pub(super) has_undated_payment: bool,
}

impl Position {
    /// Market value, in the currency of the price.
    pub(super) fn value(&self) -> Option<Decimal> {
        self.stock.price?.0.checked_mul(self.holding.shares)
    }

    /// Currency and day of the price.
    pub(super) fn price_rate(&self) -> Option<(&str, NaiveDate)> {
        Some((self.stock.currency.as_str(), self.stock.price_date?))
    }

    /// Currency of the dividends; without dividends, the currency of the price.
    pub(super) fn currency(&self) -> &str {
        self.stock.dividend_currency.as_ref().unwrap_or(&self.stock.currency)
    }

    /// True if dividends and price have the same currency, so that yields exist.
    pub(super) fn has_one_currency(&self) -> bool {
        self.currency() == self.stock.currency
    }

    /// Reasons why income or figures of this position are missing.
    pub(super) fn gaps(&self) -> Vec<IncomeGap> {
        let stock = &self.stock;
        let pays = stock.pays_dividend.unwrap_or(true);
        let found = [
            (GapReason::Delisted, !stock.is_active),
            (GapReason::DividendsUnknown, stock.is_active && stock.pays_dividend.is_none()),
            (
                GapReason::NotEstimated,
                stock.is_active && stock.pays_dividend == Some(true) && self.income.payments == 0,
            ),
            (GapReason::NoPaymentDate, self.has_undated_payment),
            (GapReason::NoPrice, stock.price.is_none()),
            (GapReason::CurrencyMismatch, pays && !self.has_one_currency() && stock.dividend_yield.is_none()),
        ];
        let found = found.into_iter().filter(|(_, is_missing)| *is_missing);
        found.map(|(reason, _)| IncomeGap { symbol: stock.symbol.clone(), reason }).collect()
    }
}

/// Removes the second row of each payment that has rows in two currencies (R39). The row in the currency of the security's
/// dividends, which `currency_of` returns for its symbol, remains.
pub(super) fn remove_translations<'a>(
    rows: &mut Vec<DividendRow>,
    currency_of: impl Fn(&str) -> Option<&'a String>,
) {
    let key = |row: &DividendRow| (row.symbol.clone(), row.ex_date, row.r#type);
    let is_declared = |row: &DividendRow| currency_of(&row.symbol) == Some(&row.currency);
    let declared: HashSet<_> = rows.iter().filter(|row| is_declared(row)).map(key).collect();
    rows.retain(|row| is_declared(row) || !declared.contains(&key(row)));
}

/// Positions of the known symbols, in request order.
pub(super) async fn find_positions(
    generation: &ServedGeneration,
    transaction: &Transaction<'_>,
    asked: &HoldingList,
    resolved: &[Option<String>],
) -> Result<(DataVersion, Vec<Position>), QueryError> {
    let symbols: Vec<String> = resolved.iter().flatten().cloned().collect();
    let (version, mut stocks) =
        lookup::find_by_symbol::<Stock>(generation, transaction, HOLDINGS, &symbols).await?;
    let mut positions: Vec<Position> = Vec::new();
    for (symbol, holding) in resolved.iter().zip(&asked.holdings) {
        let Some(symbol) = symbol else { continue };
        if let Some(known) = positions.iter_mut().find(|known| known.stock.symbol == *symbol) {
            known.holding.add(holding);
        } else if let Some(stock) = stocks.remove(symbol) {
            positions.push(Position {
                growth_5y: stock.figures.screened.growth_5y,
                stock: stock.listed,
                holding: holding.clone(),
                income: IncomeSum::default(),
                has_undated_payment: false,
            });
        }
    }
    Ok((version, positions))
}

/// Holding with its income over the twelve months.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HoldingIncome {
    /// Canonical ticker.
    symbol: String,
    /// Name of the company or fund.
    name: String,
    /// Number of shares.
    shares: ExactDecimal,
    /// Latest price.
    price: Option<ExactDecimal>,
    /// ISO 4217 currency of price, value and cost.
    price_currency: String,
    /// price x shares.
    value: Option<ExactDecimal>,
    /// ISO 4217 currency of the income.
    currency: String,
    /// Sum of confirmed and estimated income.
    income: ExactDecimal,
    /// Income from declared or paid dividends.
    confirmed: ExactDecimal,
    /// Income estimated from earlier payments.
    estimated: ExactDecimal,
    /// Number of payments.
    payments: usize,
    /// Headline dividend yield, percent (R9).
    dividend_yield: Option<ExactDecimal>,
    /// Dividend growth per year over 5 years, percent (R13).
    growth_5y: Option<ExactDecimal>,
    /// Purchase cost of all shares, as given in the request. Null if the request lists some of the shares without a
    /// cost.
    cost: Option<ExactDecimal>,
    /// income / cost, percent; null without a cost, or if dividends and price have different currencies.
    yield_on_cost: Option<ExactDecimal>,
}

impl From<Position> for HoldingIncome {
    fn from(position: Position) -> Self {
        let income = position.income.total();
        let cost = position.holding.cost;
        Self {
            value: position.value().map(ExactDecimal::amount),
            currency: position.currency().to_owned(),
            yield_on_cost: cost
                .filter(|_| position.has_one_currency())
                .and_then(|cost| percent_of(income, cost)),
            symbol: position.stock.symbol,
            name: position.stock.name,
            shares: position.holding.shares.into(),
            price: position.stock.price,
            price_currency: position.stock.currency,
            income: income.into(),
            confirmed: position.income.confirmed.into(),
            estimated: position.income.estimated.into(),
            payments: position.income.payments,
            dividend_yield: position.stock.dividend_yield,
            growth_5y: position.growth_5y,
            cost: cost.map(ExactDecimal::from),
        }
    }
}

/// `part` as a percentage of `whole`; `None` if `whole` is 0 or the calculation overflows.
pub(super) fn percent_of(part: Decimal, whole: Decimal) -> Option<ExactDecimal> {
    let hundredfold = part.checked_mul(Decimal::ONE_HUNDRED)?;
    hundredfold.checked_div(whole).map(ExactDecimal::percent)
}

table_row! {
    /// Payment of one dividend to one holding.
    pub struct IncomePayment {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Id of the dividend record; null for an estimate.
        "id" id: Option<String>,
        /// First day on which a buyer does not receive the dividend.
        "ex_date" ex_date: NaiveDate,
        /// Payment date. If the payment is estimated, this date is an estimate too.
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

/// Payment of one dividend to one holding, with its income in the requested currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConvertiblePayment {
    #[serde(flatten)]
    pub(super) payment: IncomePayment,
    /// Income in the requested currency; null without an exchange rate. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Converted>)]
    pub(super) converted: Option<Option<Converted>>,
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
