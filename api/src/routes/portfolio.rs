//! `GET /v1/portfolio/income`: income of given holdings over twelve calendar months, by holding, currency and month.

mod position;

use std::collections::BTreeMap;

use chrono::{Datelike, Days, Months, NaiveDate};
use market::decimal::ExactDecimal;
use market::row::{DividendRow, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{HoldingList, Output, ResponseFormat, parameters};
use crate::read::lookup;
use crate::render::envelope::{ListMeta, Meta, Single};
use crate::render::rows;
use crate::routes::endpoint;
use position::{HoldingIncome, IncomeGap, IncomePayment, IncomeSum, Position, find_positions, percent_of};

const PAYMENTS: &str = include_str!("../../queries/portfolio/payments.sql");
/// Fields of a JSON response. A CSV response has the columns of a payment instead, with one row per payment.
const COLUMNS: &[&str] = &["from", "until", "totals", "months", "holdings", "gaps", "payments"];
/// Income of holdings over twelve calendar months, beginning with the current month. All shares are assumed to be owned
/// for the whole time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PortfolioIncome {
    /// First day of the current month.
    from: NaiveDate,
    /// Last day of the eleventh month after the current month.
    until: NaiveDate,
    /// Sums by currency. Amounts in different currencies are never added (R4).
    totals: Vec<IncomeTotal>,
    /// Sums by currency and month, twelve months for each currency.
    months: Vec<IncomeMonth>,
    /// Holdings in request order. Several symbols of one security are merged into one holding.
    holdings: Vec<HoldingIncome>,
    /// Reasons why income or a figure is missing, by symbol.
    gaps: Vec<IncomeGap>,
    /// Payments included in the sums, ordered by payment date.
    payments: Vec<IncomePayment>,
}

parameters! {
    /// Parameters of the income.
    pub(crate) struct IncomeParameters by reader {
        /// Holdings, comma-separated, at most 100: `SYMBOL:SHARES`, or `SYMBOL:SHARES:COST` with the purchase cost of
        /// all shares. If a symbol is listed more than once, its shares and its costs are added up.
        holdings: HoldingList = reader.read_holdings(),
        output: Output = reader.read_output_with_csv(COLUMNS, IncomePayment::COLUMNS),
    }
}

endpoint! {
    /// Income of holdings
    ///
    /// Dividends of the current month and the next eleven months. Income from declared or paid dividends is confirmed.
    /// All other income is estimated from earlier payments. CSV has one row for each payment.
    get "/v1/portfolio/income", tag "Portfolio", returns "The income",
    income(Access<Free, IncomeParameters>) -> Single<PortfolioIncome> { respond(render_income) }
}

async fn render_income(context: HandlerContext<IncomeParameters>) -> Result<RenderedBody, ApiError> {
    let (asked, output) = (&context.parameters.holdings, &context.parameters.output);
    let (from, until) = twelve_months(context.today);
    let resolved = lookup::resolve_symbols(&context.generation, &asked.symbols).await?;
    let mut client = context.generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    let (version, mut positions) =
        find_positions(&context.generation, &transaction, asked, &resolved).await?;
    let symbols: Vec<&str> = positions.iter().map(|position| position.stock.symbol.as_str()).collect();
    let statement = transaction.prepare_cached(PAYMENTS).await?;
    let rows = transaction.query(&statement, &[&symbols, &from, &until]).await?;
    let mut payments = Vec::new();
    for dividend in lookup::rows_with_symbol::<DividendRow>(&rows)? {
        let position = positions.iter_mut().find(|position| position.stock.symbol == dividend.symbol);
        if let Some(position) = position.filter(|position| position.has_currency(&dividend.currency)) {
            payments.extend(IncomePayment::of(position, dividend));
        }
    }
    if output.format == ResponseFormat::Csv {
        let meta = ListMeta::new(&version, payments.len(), 0, None);
        let body = rows::render_list(output, &payments, &meta)?;
        return Ok(RenderedBody { body, version, next_cursor: None });
    }
    let unknown = asked.symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    let mut gaps: Vec<IncomeGap> = unknown.map(|(symbol, _)| IncomeGap::unknown(&symbol.text)).collect();
    gaps.extend(positions.iter().flat_map(Position::gaps));
    let answer = PortfolioIncome {
        from,
        until,
        totals: totals(&positions, &payments),
        months: months(from, &payments),
        holdings: positions.into_iter().map(HoldingIncome::from).collect(),
        gaps,
        payments,
    };
    let body = rows::render_single(output, &answer, &Meta::new(&version))?;
    Ok(RenderedBody { body, version, next_cursor: None })
}

/// First day of the current month, and last day of the eleventh month after the current month.
fn twelve_months(today: NaiveDate) -> (NaiveDate, NaiveDate) {
    let from = today.with_day(1).unwrap_or(today);
    let until = from.checked_add_months(Months::new(12)).and_then(|end| end.checked_sub_days(Days::new(1)));
    (from, until.unwrap_or(today))
}

/// Number of months that the income covers.
const MONTHS: u32 = 12;

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
fn totals(positions: &[Position], payments: &[IncomePayment]) -> Vec<IncomeTotal> {
    let mut sums: BTreeMap<&str, IncomeSum> = BTreeMap::new();
    for position in positions {
        sums.entry(&position.stock.currency).or_default();
    }
    for payment in payments {
        sums.entry(&payment.currency).or_default().add(payment.amount_status, payment.income.0);
    }
    sums.into_iter().map(|(currency, sum)| total(currency, sum, positions)).collect()
}

fn total(currency: &str, sum: IncomeSum, positions: &[Position]) -> IncomeTotal {
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
fn months(from: NaiveDate, payments: &[IncomePayment]) -> Vec<IncomeMonth> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_twelve_whole_months() {
        let day = |text: &str| text.parse::<NaiveDate>().expect("a date");
        for (today, from, until) in [
            ("2024-06-17", "2024-06-01", "2025-05-31"),
            ("2024-03-31", "2024-03-01", "2025-02-28"),
            ("2025-01-01", "2025-01-01", "2025-12-31"),
        ] {
            assert_eq!(twelve_months(day(today)), (day(from), day(until)), "{today}");
        }
    }
}
