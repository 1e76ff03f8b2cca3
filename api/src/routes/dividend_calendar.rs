//! `GET /v1/dividends/calendar`, `/ex-dates` and `/payment-dates`: dividends by payment date or ex-date (R20).
//!
//! `GET /v1/splits/calendar`: splits of the whole market by ex-date.
//!
//! A calendar contains declared dividends of all securities with a date from the first to the last day, both included. It
//! contains projected payments only on request, and no withdrawn or quarantined rows. `days_until` counts from today.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use chrono::{Days, NaiveDate};
use market::decimal::ExactDecimal;
use market::event::{DividendType, Frequency};
use market::row::{DividendRow, SplitRow, SplitType, TableRow};
use market::{table_row, text_enum};
use rust_decimal::Decimal;
use serde::Serialize;
use store::FromRow;
use tokio_postgres::types::ToSql;
use utoipa::ToSchema;

use super::conversion::{Conversion, Converted, ConvertibleColumns, payment_rate};
use super::endpoint;
use crate::answer::{Free, HandlerContext, RenderedBody, render_page};
use crate::error::ApiError;
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, DateRange, Direction, OtherDateRanges, Output, Page, PageOptions, ParameterReader, SortValue,
    Sortable, SymbolList, parameters,
};
use crate::read::DataVersion;
use crate::read::lookup::{self, ResolvedSymbols};
use crate::render::envelope::{List, ListMeta};

const EX_DATES: &str = include_str!("../../queries/dividends/ex_dates.sql");
const EX_DATES_DESCENDING: &str = include_str!("../../queries/dividends/ex_dates_descending.sql");
const PAYMENT_DATES: &str = include_str!("../../queries/dividends/payment_dates.sql");
const PAYMENT_DATES_DESCENDING: &str = include_str!("../../queries/dividends/payment_dates_descending.sql");
/// Maximum range in days.
const LONGEST: i64 = 366;
/// Pagination of every calendar.
pub(super) const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 500,
    keys: &["event_date"],
    order: &[("event_date", Direction::Ascending)],
};

text_enum! {
    /// Kind of calendar event: ex-date or payment.
    pub enum EventType { ExDividend = "ex_dividend", Payment = "payment" }
}

table_row! {
    /// The security of a calendar row.
    pub struct CalendarSecurity {
        /// Name of the company or fund.
        "name" name: String,
        /// Market identifier code of the primary listing.
        "exchange" exchange: Option<String>,
        /// Sector name.
        "sector" sector: Option<String>,
        /// Latest price, in `price_currency`.
        "price" price: Option<ExactDecimal>,
        /// ISO 4217 currency of the price.
        "price_currency" price_currency: String,
        /// Headline dividend yield, percent.
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
        /// Market capitalisation, whole units of `price_currency` (R24).
        "market_cap" market_cap: Option<i64>,
        /// Market capitalisation, whole units of the reporting currency; null without an exchange rate.
        "reporting_market_cap" reporting_market_cap: Option<i64>,
    }
}

/// Dividend record with its security and its calendar event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CalendarRow {
    #[serde(flatten)]
    dividend: DividendRow,
    #[serde(flatten)]
    security: CalendarSecurity,
    /// Ex-date or payment date of the row, according to `event_type`.
    event_date: NaiveDate,
    /// Kind of the event on `event_date`.
    event_type: EventType,
    /// Number of days from today to the event; negative for past events.
    days_until: i64,
    /// Amount in the requested currency; null without an exchange rate. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Converted>)]
    converted: Option<Option<Converted>>,
}

static COLUMNS: LazyLock<ConvertibleColumns> = LazyLock::new(|| {
    let around = CalendarSecurity::COLUMNS.iter().copied().chain(["event_date", "event_type", "days_until"]);
    let all: Vec<&str> = DividendRow::COLUMNS.iter().copied().chain(around).collect();
    ConvertibleColumns::of(&all)
});

parameters! {
    /// Parameters of a calendar.
    pub(crate) struct CalendarParameters<const DAYS: u64> by reader {
        days: RangeInclusive<NaiveDate> = read_days(reader, DAYS),
        /// Comma-separated symbols (at most 50).
        symbols: Option<SymbolList> = reader.read_symbols(50),
        /// Sectors by name or slug, comma-separated.
        sector: Option<Vec<String>> = reader.read_names(FilterField::Sector),
        /// Minimum headline dividend yield, percent.
        min_yield: Option<Decimal> = reader.read_decimal("min_yield", Bounds::Percent),
        currency: Option<String> = reader.read_target_currency(),
        /// Minimum cash amount per share, in `currency` at the newest exchange rate. Without `currency`, in the reporting
        /// currency: US dollars, unless the operator chose another one.
        min_amount: Option<Decimal> = reader.read_decimal("min_amount", Bounds::Amount),
        /// Dividend types as declared, comma-separated.
        r#type: Option<Vec<DividendType>> = reader.read_words("type", DividendType::ALL),
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>> = reader.read_words("frequency", Frequency::ALL),
        /// Includes dividends that are expected because of earlier payments but not declared. Their amounts and payment
        /// dates are estimates.
        include_projected: bool = reader.read_bool_or("include_projected", false),
        other_days: OtherDateRanges = reader.read_other_date_ranges(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_convertible_output(&COLUMNS, currency.as_ref()),
    }
}

/// Reads `start_date` and `end_date` of a calendar. The default first day is today. The default last day is `length`
/// days after the first day.
pub(super) fn read_days(reader: &mut ParameterReader<'_>, length: u64) -> RangeInclusive<NaiveDate> {
    let start = reader.read_date("start_date");
    reader.describe(
        "start_date",
        "First day. Default: today. For a day before the tier's history the response is a 403.",
    );
    let first = start.unwrap_or(reader.today);
    reader.properties.oldest_day = Some(first);
    let end = reader.read_end_date(start);
    reader.describe(
        "end_date",
        format_args!(
            "Last day, at most {LONGEST} days after `start_date`. Default: {length} days after `start_date`."
        ),
    );
    let last = end.or(first.checked_add_days(Days::new(length))).unwrap_or(first);
    let ordered = start.is_some() || first <= last;
    reader.require(ordered, "end_date", "is before start_date (default: today)");
    let days = last.signed_duration_since(first).num_days();
    reader.require(days <= LONGEST, "end_date", "is more than 366 days after start_date");
    first..=last
}

impl CalendarRow {
    fn of(
        row: &tokio_postgres::Row,
        event_type: EventType,
        today: NaiveDate,
    ) -> Result<Self, tokio_postgres::Error> {
        let dividend = DividendRow::from_row(row)?;
        let event_date = match event_type {
            EventType::ExDividend => dividend.ex_date,
            EventType::Payment => dividend.payment_date.unwrap_or(dividend.ex_date),
        };
        let days_until = event_date.signed_duration_since(today).num_days();
        let security = CalendarSecurity::from_row(row)?;
        Ok(Self { dividend, security, event_date, event_type, days_until, converted: None })
    }

    fn key(&self) -> Vec<Option<String>> {
        let id = self.dividend.id.clone().unwrap_or_default();
        let key =
            [self.event_date.to_string(), self.dividend.symbol.clone(), self.dividend.r#type.to_string(), id];
        key.into_iter().map(Some).collect()
    }
}

async fn page<const DAYS: u64>(
    context: HandlerContext<CalendarParameters<DAYS>>,
    event_type: EventType,
    ascending: &str,
    descending: &str,
) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols.as_ref()).await?;
    let after: Option<NaiveDate> = asked.page.after_value(0).and_then(|day| day.parse().ok());
    let (symbol, kind, id) =
        (asked.page.after_value(1), asked.page.after_value(2), asked.page.after_value(3));
    let least_yield = asked.min_yield.map(ExactDecimal);
    let least_amounts = match asked.min_amount {
        Some(amount) => Some(least_amounts(&context, amount, asked.currency.as_deref()).await?),
        None => None,
    };
    let (currencies, least_amounts) = least_amounts.unzip();
    let probe = asked.page.limit + 1;
    let OtherDateRanges { declared, record } = asked.other_days;
    let parameters: [&(dyn ToSql + Sync); 19] = [
        asked.days.start(),
        asked.days.end(),
        &known,
        &asked.sector,
        &least_yield,
        &currencies,
        &asked.r#type,
        &asked.frequency,
        &asked.include_projected,
        &after,
        &symbol,
        &kind,
        &id,
        &probe,
        &declared.start,
        &declared.end,
        &record.start,
        &record.end,
        &least_amounts,
    ];
    let statement = if asked.page.direction() == Direction::Ascending { ascending } else { descending };
    let rows = lookup::run_query(&context.generation, statement, &parameters).await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let present = lookup::rows_with(&rows, "symbol");
    let mut rows =
        present.map(|row| CalendarRow::of(row, event_type, context.today)).collect::<Result<Vec<_>, _>>()?;
    let signer = context.app.signer.of_response(version.to_exact_text());
    let next_cursor = asked.page.split_off_next_cursor(&mut rows, &signer, CalendarRow::key);
    let mut meta = ListMeta::new(&version, rows.len(), asked.page.limit, next_cursor);
    meta.today = Some(context.today);
    meta.set_missing(asked.symbols.as_ref().map(|_| missing));
    let Some(currency) = &asked.currency else { return render_page(&asked.output, &rows, &meta, version) };
    let amounts = rows.iter().map(|row| payment_rate(&row.dividend.currency, row.dividend.ex_date));
    let amounts: Vec<_> = amounts.collect();
    let conversion = Conversion::load(&context.generation, &version, Some(currency), &amounts).await?;
    for row in &mut rows {
        let DividendRow { amount, currency, ex_date, .. } = &row.dividend;
        row.converted = Some(conversion.convert_payment(amount.0, currency, *ex_date));
    }
    meta.warnings.extend(conversion.warning(rows.iter().map(|row| &row.converted)));
    render_page(&asked.output, &rows, &meta, version)
}

/// Currencies of the market's dividends, and the amount in each of them that equals `amount` in the currency `of`, or in
/// the reporting currency.
async fn least_amounts<P>(
    context: &HandlerContext<P>,
    amount: Decimal,
    of: Option<&str>,
) -> Result<(Vec<String>, Vec<ExactDecimal>), ApiError> {
    let stock_table = context.app.memory_tables.stocks(&context.generation).await?;
    let stocks = stock_table.rows.iter().map(|member| &member.stock);
    let currencies: BTreeSet<&str> = stocks
        .flat_map(|stock| stock.dividend_currency.iter().chain([&stock.currency]))
        .map(String::as_str)
        .collect();
    let version = &stock_table.version;
    let newest = version.as_of.unwrap_or(context.today);
    let needed: Vec<_> = currencies.iter().map(|currency| (*currency, newest)).collect();
    let conversion = Conversion::load(&context.generation, version, of, &needed).await?;
    let known = currencies.into_iter().filter_map(|currency| {
        Some((currency.to_owned(), ExactDecimal(conversion.threshold(amount, currency)?)))
    });
    Ok(known.unzip())
}

endpoint! {
    /// Dividend calendar
    ///
    /// Dividend payments in a range of days, by payment date. For ex-dates see `/v1/dividends/ex-dates`.
    get "/v1/dividends/calendar", tag "Dividends", returns "A page of payments",
    calendar(Access<Free, CalendarParameters<30>>) -> List<CalendarRow> { respond(|context| page(context, EventType::Payment, PAYMENT_DATES, PAYMENT_DATES_DESCENDING)) }
}

endpoint! {
    /// Ex-dividend dates
    ///
    /// Securities with an ex-dividend date in a range of days.
    get "/v1/dividends/ex-dates", tag "Dividends", returns "A page of ex-dates",
    ex_dates(Access<Free, CalendarParameters<7>>) -> List<CalendarRow> { respond(|context| page(context, EventType::ExDividend, EX_DATES, EX_DATES_DESCENDING)) }
}

endpoint! {
    /// Payment dates
    ///
    /// Securities that pay dividends in a range of days.
    get "/v1/dividends/payment-dates", tag "Dividends", returns "A page of payments",
    payment_dates(Access<Free, CalendarParameters<30>>) -> List<CalendarRow> { respond(|context| page(context, EventType::Payment, PAYMENT_DATES, PAYMENT_DATES_DESCENDING)) }
}

const SPLITS: &str = include_str!("../../queries/splits/calendar.sql");

/// Split record with its security and its calendar event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SplitCalendarRow {
    #[serde(flatten)]
    split: SplitRow,
    #[serde(flatten)]
    security: CalendarSecurity,
    /// Ex-date of the row, under the name that all calendars use.
    event_date: NaiveDate,
    /// Number of days from today to the event; negative for past events.
    days_until: i64,
}

static SPLIT_COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| [SplitRow::COLUMNS, CalendarSecurity::COLUMNS, &["event_date", "days_until"]].concat());

parameters! {
    /// Parameters of the split calendar.
    pub(crate) struct SplitCalendarParameters by reader {
        days: RangeInclusive<NaiveDate> = read_days(reader, 30),
        /// Comma-separated symbols (at most 50).
        symbols: Option<SymbolList> = reader.read_symbols(50),
        /// Sectors by name or slug, comma-separated.
        sector: Option<Vec<String>> = reader.read_names(FilterField::Sector),
        /// Minimum headline dividend yield of the security, percent.
        min_yield: Option<Decimal> = reader.read_decimal("min_yield", Bounds::Percent),
        /// Types of splits, comma-separated.
        r#type: Option<Vec<SplitType>> = reader.read_words("type", SplitType::ALL),
        declared: DateRange = reader.read_declared_range(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(&SPLIT_COLUMNS),
    }
}

impl SplitCalendarRow {
    fn of(row: &tokio_postgres::Row, today: NaiveDate) -> Result<Self, tokio_postgres::Error> {
        let (split, security) = (SplitRow::from_row(row)?, CalendarSecurity::from_row(row)?);
        let event_date = split.ex_date;
        Ok(Self {
            split,
            security,
            event_date,
            days_until: event_date.signed_duration_since(today).num_days(),
        })
    }
}

impl Sortable for SplitCalendarRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.event_date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        format!("{}\0{}\0{}", self.split.symbol, self.split.r#type, self.split.id).into()
    }
}

endpoint! {
    /// Split calendar
    ///
    /// Splits with an ex-date in a range of days, announced splits included. Price-only types (spin-offs, rights, class
    /// distributions) multiply only prices.
    get "/v1/splits/calendar", tag "Splits", returns "A page of splits",
    split_calendar(Access<Free, SplitCalendarParameters>) -> List<SplitCalendarRow> { respond(split_page) }
}

async fn split_page(context: HandlerContext<SplitCalendarParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols.as_ref()).await?;
    let least_yield = asked.min_yield.map(ExactDecimal);
    let rows = lookup::run_query(
        &context.generation,
        SPLITS,
        &[
            asked.days.start(),
            asked.days.end(),
            &known,
            &asked.sector,
            &least_yield,
            &asked.r#type,
            &asked.declared.start,
            &asked.declared.end,
        ],
    )
    .await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let present = lookup::rows_with(&rows, "symbol");
    let rows = present.map(|row| SplitCalendarRow::of(row, context.today)).collect::<Result<Vec<_>, _>>()?;
    context.render_page(&asked.output, &asked.page, version, &rows, |meta| {
        meta.today = Some(context.today);
        meta.set_missing(asked.symbols.as_ref().map(|_| missing));
    })
}
