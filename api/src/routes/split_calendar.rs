//! `GET /v1/splits/calendar`: splits of the whole market by ex-date.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::row::{SplitRow, SplitType, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use store::FromRow;
use utoipa::ToSchema;

use super::dividend_calendar::{CalendarSecurity, PAGING, read_days};
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::facets::FilterField;
use crate::parameters::{Bounds, DateRange, Output, Page, SortValue, Sortable, SymbolList, parameters};
use crate::read::DataVersion;
use crate::read::lookup::{self, ResolvedSymbols};
use crate::render::envelope::List;
use crate::routes::endpoint;

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

static COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| [SplitRow::COLUMNS, CalendarSecurity::COLUMNS, &["event_date", "days_until"]].concat());

parameters! {
    /// Parameters of the calendar.
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
        output: Output = reader.read_output(&COLUMNS),
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
    calendar(Access<Free, SplitCalendarParameters>) -> List<SplitCalendarRow> { respond(page) }
}

async fn page(context: HandlerContext<SplitCalendarParameters>) -> Result<RenderedBody, ApiError> {
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
        if asked.symbols.is_some() {
            meta.set_missing(missing);
        }
    })
}
