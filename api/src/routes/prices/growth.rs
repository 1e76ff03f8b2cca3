//! `GET /v1/stocks/{symbol}/growth`: growth of an amount that is invested in a security.

use std::sync::Arc;

use chrono::NaiveDate;
use market::day::date_of;
use market::decimal::ExactDecimal;
use market::metrics::{GrowthPoint, Investment, annualized_return, growth_of_amount};
use market::price::Interval;
use market::row::TableRow;
use market::table_row;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::SecurityPrices;
use super::history::find_served_prices;
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Bounds, Knowledge, Output, RequestedSymbol, parameters};
use crate::read::lookup::PastVersion;
use crate::render::envelope::{ListMeta, Warning};
use crate::render::rows;
use crate::routes::endpoint;

/// Maximum number of rows: more weeks than any history has.
const MAX_ROWS: i64 = 10_000;
const INTERVALS: &[Interval] = &[Interval::Weekly, Interval::Monthly, Interval::Quarterly, Interval::Yearly];

table_row! {
    /// Investment at its first session or at the end of a period.
    pub struct GrowthRow {
        /// First session, or last session of the period.
        "date" date: NaiveDate,
        /// Raw close of the session.
        "price" price: ExactDecimal,
        /// Number of shares, rounded to 10 decimal places at each purchase.
        "shares" shares: ExactDecimal,
        /// Sum of the amount and the contributions so far.
        "invested" invested: ExactDecimal,
        /// Sum of the dividends received so far.
        "dividends" dividends: ExactDecimal,
        /// Value of the shares, plus the dividends that were not reinvested.
        "value" value: ExactDecimal,
        /// Gain: value over `invested`, percent.
        "gain_percent" gain_percent: Option<ExactDecimal>,
        /// Mean return per year since the start, percent. Null in the first year, and with contributions.
        "annualized_return" annualized_return: Option<ExactDecimal>,
    }
}

/// Growth of an amount.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrowthAnswer {
    /// A row for the first session, and one for each period, oldest first.
    data: Vec<GrowthRow>,
    /// Data version, security and currency.
    meta: GrowthMeta,
}

/// Metadata of the growth of an amount.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrowthMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// Canonical ticker.
    symbol: String,
    /// ISO 4217 currency of prices and amounts.
    currency: Option<String>,
}

parameters! {
    /// Parameters of the growth of an amount.
    pub(crate) struct GrowthParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// Day of the investment: the first session on or after it counts. Default: first day of the tier's history. A
        /// request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last day. Default: the newest session.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Amount that is invested at the start, in the currency of the prices. Default: 10000.
        amount: Decimal = reader.read_decimal("amount", Bounds::AtLeast(1)).unwrap_or(Decimal::from(10_000)),
        /// Amount that is invested at the first session of each later period. Default: 0.
        contribution: Decimal = reader.read_decimal("contribution", Bounds::Amount).unwrap_or_default(),
        /// Length of a period. Default: monthly.
        interval: Interval = reader.read_word("interval", INTERVALS).unwrap_or(Interval::Monthly),
        /// True if dividends buy shares at the close of their ex-date, false if they stay as cash.
        reinvest: bool = reader.read_bool_or("reinvest", true),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(GrowthRow::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
}

endpoint! {
    /// Growth of an amount
    ///
    /// Value of an amount that was invested in a security, at the start and by period, oldest first. Splits are applied,
    /// and dividends are reinvested at the close of their ex-date, as in the total return. Numbers of shares have
    /// fractions.
    get "/v1/stocks/{symbol}/growth", tag "Stocks", returns "Growth by period",
    growth(Access<Free, GrowthParameters>) -> GrowthAnswer { respond(render) }
}

async fn render(context: HandlerContext<GrowthParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let start = context.first_day(asked.start_date);
    let live = async {
        let (series, _) =
            find_served_prices(&context.generation, &asked.symbol, [Some(start), asked.end_date]).await?;
        Ok::<_, ApiError>((series.version, series))
    };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, &asked.symbol).await?;
        SecurityPrices::of_past(past.version(), &security, i32::MIN, i32::MAX)
    };
    let (version, series) = context.read_as_known(asked.knowledge.as_ref(), live, past).await?;
    let grown = grow(asked, &series, start);
    let rows = grown.as_deref().unwrap_or_default();
    let mut list = ListMeta::new(&version, rows.len(), MAX_ROWS, None);
    list.known_at = context.known_at;
    list.set_depth(context.depth_without(asked.start_date), context.today);
    if grown.is_none() {
        let message = "A distribution is in another currency than the prices, and no exchange rate is known";
        list.warnings.push(Warning { code: "fx_missing", message: message.to_owned(), param: None });
    }
    let SecurityPrices { symbol, currency, .. } = series;
    let meta = GrowthMeta { list, symbol, currency };
    Ok(RenderedBody { body: rows::render_list(&asked.output, rows, &meta)?, version, next_cursor: None })
}

/// Rows of the investment. `None` if a distribution has no rate to the currency of the prices.
fn grow(asked: &GrowthParameters, series: &SecurityPrices, start: NaiveDate) -> Option<Vec<GrowthRow>> {
    let bars = &series.bars;
    let range = series.bars_between(start, asked.end_date);
    let periods = asked.interval.periods(&bars.day, range.clone());
    let GrowthParameters { amount, contribution, reinvest, .. } = *asked;
    let investment = Investment { amount, contribution, reinvest };
    let points = series.with_closes(|closes| growth_of_amount(closes, &periods, investment))?;
    let row = |point: &GrowthPoint| {
        let GrowthPoint { session, price, shares, invested, dividends, value } = *point;
        let days = i64::from(bars.day[session] - bars.day[range.start]);
        let yearly = annualized_return(amount, value, days).filter(|_| contribution.is_zero());
        let gain = value.checked_sub(invested).and_then(|gain| gain.checked_mul(Decimal::ONE_HUNDRED));
        GrowthRow {
            date: date_of(bars.day[session]),
            price: ExactDecimal(price.normalize()),
            shares: ExactDecimal(shares.normalize()),
            invested: invested.into(),
            dividends: ExactDecimal::amount(dividends),
            value: ExactDecimal::amount(value),
            gain_percent: gain.and_then(|gain| gain.checked_div(invested)).map(ExactDecimal::percent),
            annualized_return: yearly.map(ExactDecimal::percent),
        }
    };
    Some(points.iter().map(row).collect())
}
