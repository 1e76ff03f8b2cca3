//! `GET /v1/portfolio/income`: income of given holdings over twelve calendar months, by holding, currency and month.

mod body_lines;
mod brokers;
mod distribution_events;
mod position;
pub(crate) mod received;
mod received_payment;
mod received_totals;
mod reconciliation;
mod share_count;
mod totals;
pub(crate) mod transactions;

use std::sync::LazyLock;

use chrono::{Datelike, Days, Months, NaiveDate};
use market::row::{DividendRow, TableRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody, render_page};
use crate::error::ApiError;
use crate::parameters::{HoldingList, Output, ResponseFormat, parameters};
use crate::read::lookup;
use crate::render::envelope::{ListMeta, Meta, Single};
use crate::render::rows;
use crate::routes::conversion::{Conversion, ConvertibleColumns, payment_rate};
use crate::routes::endpoint;
use position::{
    ConvertiblePayment, HoldingIncome, IncomeGap, IncomePayment, Position, find_positions,
    remove_translations,
};
use totals::{ConvertedIncome, IncomeMonth, IncomeTotal, MONTHS, months, totals};

const PAYMENTS: &str = include_str!("../../queries/portfolio/payments.sql");
/// Fields of a JSON response. A CSV response has the columns of a payment instead, with one row per payment.
const COLUMNS: &[&str] = &["from", "until", "totals", "months", "holdings", "gaps", "payments", "converted"];
static PAYMENT_COLUMNS: LazyLock<ConvertibleColumns> =
    LazyLock::new(|| ConvertibleColumns::of(IncomePayment::COLUMNS));

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
    payments: Vec<ConvertiblePayment>,
    /// Income and value in the requested currency. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    converted: Option<ConvertedIncome>,
}

parameters! {
    /// Parameters of the income.
    pub(crate) struct IncomeParameters by reader {
        /// Holdings, comma-separated, at most 100: `SYMBOL:SHARES`, or `SYMBOL:SHARES:COST` with the purchase cost of
        /// all shares. If a symbol is listed more than once, its shares and its costs are added up.
        holdings: HoldingList = reader.read_holdings(),
        currency: Option<String> = reader.read_target_currency(),
        output: Output = reader.read_convertible_csv(COLUMNS, &PAYMENT_COLUMNS, currency.as_ref()),
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
    let mut dividends = lookup::rows_with_symbol::<DividendRow>(&rows)?;
    remove_translations(&mut dividends, |symbol| {
        let position = positions.iter().find(|position| position.stock.symbol == symbol);
        position?.stock.dividend_currency.as_ref()
    });
    let mut payments = Vec::new();
    for dividend in dividends {
        if let Some(position) = positions.iter_mut().find(|position| position.stock.symbol == dividend.symbol)
        {
            payments.extend(IncomePayment::of(position, dividend));
        }
    }
    // The connection is free before the rates are loaded.
    drop(transaction);
    drop(client);
    let mut converted = None;
    let (totals, months) = (totals(&positions, &payments), months(from, &payments));
    let payments = match &context.parameters.currency {
        None => payments.into_iter().map(|payment| ConvertiblePayment { payment, converted: None }).collect(),
        Some(currency) => {
            let amounts = payments.iter().map(|payment| payment_rate(&payment.currency, payment.ex_date));
            let prices = positions.iter().filter_map(Position::price_rate);
            let amounts: Vec<_> = amounts.chain(prices).collect();
            let conversion =
                Conversion::load(&context.generation, &version, Some(currency), &amounts).await?;
            let payments = convert_payments(&conversion, payments);
            converted = Some(ConvertedIncome::of(&conversion, from, &positions, &payments));
            payments
        }
    };
    if output.format == ResponseFormat::Csv {
        let meta = ListMeta::new(&version, payments.len(), 0, None);
        return render_page(output, &payments, &meta, version);
    }
    let unknown = asked.symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    let mut gaps: Vec<IncomeGap> = unknown.map(|(symbol, _)| IncomeGap::unknown(&symbol.text)).collect();
    gaps.extend(positions.iter().flat_map(Position::gaps));
    let answer = PortfolioIncome {
        from,
        until,
        totals,
        months,
        holdings: positions.into_iter().map(HoldingIncome::from).collect(),
        gaps,
        payments,
        converted,
    };
    let body = rows::render_single(output, &answer, &Meta::new(&version))?;
    Ok(RenderedBody { body, version, next_cursor: None })
}

fn convert_payments(conversion: &Conversion, payments: Vec<IncomePayment>) -> Vec<ConvertiblePayment> {
    let convert = |payment: IncomePayment| {
        let IncomePayment { income, currency, ex_date, .. } = &payment;
        let converted = Some(conversion.convert_payment(income.0, currency, *ex_date));
        ConvertiblePayment { payment, converted }
    };
    payments.into_iter().map(convert).collect()
}

/// First day of the current month, and last day of the eleventh month after the current month.
fn twelve_months(today: NaiveDate) -> (NaiveDate, NaiveDate) {
    let from = today.with_day(1).unwrap_or(today);
    let until =
        from.checked_add_months(Months::new(MONTHS)).and_then(|end| end.checked_sub_days(Days::new(1)));
    (from, until.unwrap_or(today))
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
