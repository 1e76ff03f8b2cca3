//! `GET /v1/prices/{symbol}/latest`: newest bar of one security. Prices of one security before rendering.
//!
//! Prices are stored raw, in packed columns of scaled integers. [`market::price`] adjusts and writes these columns. Ten
//! years of prices are the largest response.

pub(crate) mod growth;
pub(crate) mod history;
pub(crate) mod market;

use std::ops::Range;
use std::slice;
use std::sync::{Arc, LazyLock};

use ::market::day::day_number;
use ::market::decimal::ExactDecimal;
use ::market::metrics::{AdjustmentFactor, CloseSeries, DerivedRows};
use ::market::price::{
    AdjustedBars, CumulativeFactors, PriceBasis, PriceColumn, PriceEncoder, PriceFormat, PricePoint, RawBars,
    RowLabels, SessionRange,
};
use ::market::row::JsonColumn;
use chrono::NaiveDate;
use codec::bars::PackedBars;
use rust_decimal::Decimal;
use serde::Serialize;
use tokio_postgres::Row;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, RequestedSymbol, ResponseFormat, parameters};
use crate::read::DataVersion;
use crate::read::lookup::{self, PastVersion};
use crate::read::past_securities::PastSecurity;
use crate::render::envelope::{Meta, Single};
use crate::render::rows;
use crate::routes::endpoint;

const LATEST: &str = include_str!("../../queries/prices/latest.sql");

static COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| PriceColumn::ALL.iter().map(|column| column.as_str()).collect());

/// The newest bar. It is adjusted for later splits and spin-offs, but not for dividends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LatestPrice {
    /// Canonical ticker.
    symbol: String,
    /// Market identifier code of the primary listing.
    exchange: Option<String>,
    /// ISO 4217 currency of every price.
    currency: Option<String>,
    /// Close of the session before this bar. It is adjusted for splits and spin-offs after that session.
    previous_close: Option<ExactDecimal>,
    /// Number of sessions since this bar; 0 if the bar is of the market's newest session.
    age_sessions: i32,
    #[serde(flatten)]
    point: PricePoint,
}

parameters! {
    /// Parameters of the latest price.
    pub(crate) struct LatestParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(&COLUMNS),
    }
}

endpoint! {
    /// Latest price
    ///
    /// The newest valid bar, with its session and its age in sessions.
    get "/v1/prices/{symbol}/latest", tag "Prices", returns "The latest price point",
    latest(Access<Free, LatestParameters>) -> Single<LatestPrice> { respond(render) }
}

async fn render(context: HandlerContext<LatestParameters>) -> Result<RenderedBody, ApiError> {
    let LatestParameters { symbol, knowledge, output } = &context.parameters;
    let live = async {
        let rows = lookup::run_query(&context.generation, LATEST, &[&symbol.candidates]).await?;
        let row = lookup::first_row(&context.generation, &rows)?;
        let series = SecurityPrices::from_row(row)?;
        let series = series.ok_or_else(|| lookup::unknown_symbol_error(symbol))?;
        Ok::<_, ApiError>((series.version, series))
    };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, symbol).await?;
        SecurityPrices::of_past(past.version(), &security, i32::MIN, i32::MAX)
    };
    let (_, series) = context.read_as_known(knowledge.as_ref(), live, past).await?;
    let none = || ApiError::NotFound(format!("No prices of {}", series.symbol));
    let last = series.bars.len().checked_sub(1).ok_or_else(none)?;
    let period = last..last + 1;
    let exchange = rows::encode_text(output, series.exchange.as_deref())?;
    let mut body = rows::single_opening(output)?;
    series.encode(&price_encoder(output), PriceBasis::SPLIT, &exchange, slice::from_ref(&period), &mut body);
    let meta = Meta { known_at: context.known_at, ..Meta::new(&series.version) };
    body.extend(rows::single_closing(output, &meta)?);
    Ok(RenderedBody { body: body.into(), version: series.version, next_cursor: None })
}

/// Encoder of price rows in the format and with the fields of a request.
pub(super) fn price_encoder(output: &Output) -> PriceEncoder {
    let names = output.fields.as_deref().unwrap_or(output.columns);
    let columns: Vec<PriceColumn> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let format = match output.format == ResponseFormat::Csv {
        true => PriceFormat::Csv,
        false => PriceFormat::Json { text_decimals: output.text_decimals },
    };
    PriceEncoder::new(&columns, format)
}

/// Bars and adjustment factors of one security.
#[derive(Debug)]
pub(super) struct SecurityPrices {
    pub(super) version: DataVersion,
    pub(super) symbol: String,
    pub(super) exchange: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) age_sessions: Option<i32>,
    pub(super) factors: Vec<AdjustmentFactor>,
    pub(super) bars: RawBars,
}

impl SecurityPrices {
    /// Indexes of the bars from one day to another; `None` is the newest bar.
    pub(super) fn bars_between(&self, start: NaiveDate, end: Option<NaiveDate>) -> Range<usize> {
        let index_after = |day: i32| self.bars.day.partition_point(|known| *known < day);
        let first = index_after(day_number(start));
        let last = end.map_or(self.bars.len(), |end| index_after(day_number(end) + 1));
        first..last.max(first)
    }

    /// Closes of all bars, with the adjustment factors between them.
    pub(super) fn with_closes<T>(&self, run: impl FnOnce(&CloseSeries<'_>) -> T) -> T {
        let bars = &self.bars;
        let close = |index: usize| Decimal::new(bars.close[index], bars.scale[index].into());
        run(&CloseSeries { days: &bars.day, close: &close, factors: &self.factors })
    }

    /// Appends one row for each period. `exchange` is an encoded value, for rows with the column `exchange`.
    pub(super) fn encode(
        &self,
        encoder: &PriceEncoder,
        basis: PriceBasis,
        exchange: &[u8],
        periods: &[SessionRange],
        out: &mut Vec<u8>,
    ) {
        let Self { symbol, currency, age_sessions, factors, bars, .. } = self;
        let cumulative = CumulativeFactors::new(factors, self.version.as_of);
        let labels =
            RowLabels { symbol, exchange, currency: currency.as_deref(), age_sessions: *age_sessions };
        let adjusted = AdjustedBars { bars, cumulative: &cumulative, factors, basis };
        encoder.encode(&adjusted, labels, periods, out);
    }

    /// Prices of a security at an earlier data version, for the calendar years `first` to `last`. The last earlier year
    /// that has bars is also included, because the first price change needs the preceding close. As in the served
    /// tables, each year has its own price scale (number of decimal places).
    pub(super) fn of_past(
        version: DataVersion,
        security: &PastSecurity,
        first: i32,
        last: i32,
    ) -> Result<Self, ApiError> {
        let DerivedRows { stock, factors, bars: all, .. } = &security.rows;
        let mut bars = RawBars::default();
        let years = all.years();
        let earliest = years.iter().map(|(year, _)| *year).take_while(|year| *year < first).last();
        let is_needed = |year: i32| year <= last && year >= earliest.unwrap_or(first);
        for (_, range) in years.into_iter().filter(|(year, _)| is_needed(*year)) {
            let mut year = all.slice(range);
            year.canonicalize();
            let symbol = &stock.listed.symbol;
            bars.append(year)
                .map_err(|error| ApiError::Internal(anyhow::anyhow!("prices of {symbol}: {error}")))?;
        }
        Ok(Self {
            version,
            symbol: stock.listed.symbol.clone(),
            exchange: stock.listed.exchange.clone(),
            currency: Some(stock.listed.currency.clone()),
            age_sessions: stock.figures.price_age_sessions,
            factors: factors.clone(),
            bars,
        })
    }

    /// Reads a row from the result of an SQL query for prices. Returns `None` if the row has no security, for example
    /// because the symbol is unknown.
    pub(super) fn from_row(row: &Row) -> Result<Option<Self>, ApiError> {
        let Some(symbol) = row.try_get::<_, Option<String>>("canonical")? else { return Ok(None) };
        let factors: Option<JsonColumn<Vec<AdjustmentFactor>>> = row.try_get("factors")?;
        let mut bars = RawBars::default();
        for year in years(row)? {
            let appended = year.unpack().and_then(|year| Ok(bars.append(year)?));
            appended.map_err(|error| ApiError::Internal(anyhow::anyhow!("prices of {symbol}: {error}")))?;
        }
        Ok(Some(Self {
            version: DataVersion::from_row(row)?,
            exchange: row.try_get("exchange")?,
            currency: row.try_get("currency")?,
            age_sessions: row.try_get("price_age_sessions")?,
            factors: factors.map(|factors| factors.0).unwrap_or_default(),
            symbol,
            bars,
        }))
    }
}

fn years(row: &Row) -> Result<Vec<PackedBars>, tokio_postgres::Error> {
    let column = |name| row.try_get::<_, Option<Vec<Vec<u8>>>>(name).map(Option::unwrap_or_default);
    let (days, close, range, volume, extra) =
        (column("days")?, column("close")?, column("range")?, column("volume")?, column("extra")?);
    let columns = days.into_iter().zip(close).zip(range).zip(volume).zip(extra);
    let packed = columns.map(|((((days, close), range), volume), extra)| PackedBars {
        days,
        close,
        range,
        volume,
        extra,
        versions: vec![],
    });
    Ok(packed.collect())
}

/// Fields of a price row in a list, in order.
static ROW_COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let is_latest = |column: &PriceColumn| {
        matches!(column, PriceColumn::Exchange | PriceColumn::PreviousClose | PriceColumn::AgeSessions)
    };
    PriceColumn::ALL.iter().filter(|column| !is_latest(column)).map(|column| column.as_str()).collect()
});

/// Price point with its symbol and currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceRow {
    /// Canonical ticker.
    symbol: String,
    /// ISO 4217 currency of every price.
    currency: Option<String>,
    #[serde(flatten)]
    point: PricePoint,
}
