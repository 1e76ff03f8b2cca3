//! Prices of one security before rendering: columns of bars, and adjustment factors, as read or derived.

use codec::bars::PackedBars;
use market::metrics::{AdjustmentFactor, DerivedRows};
use market::price::{
    AdjustedBars, CumulativeFactors, PriceBasis, PriceColumn, PriceEncoder, PriceFormat, RawBars, RowLabels,
    SessionRange,
};
use market::row::JsonColumn;
use tokio_postgres::Row;

use crate::error::ApiError;
use crate::parameters::{Output, ResponseFormat};
use crate::read::DataVersion;
use crate::read::past_securities::PastSecurity;

/// Encoder of price rows in the format and with the fields of a request.
pub(super) fn price_encoder(output: &Output) -> PriceEncoder {
    let names = output.fields.as_deref().unwrap_or(output.columns);
    let columns: Vec<PriceColumn> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let format = match output.format {
        ResponseFormat::Json => PriceFormat::Json { text_decimals: output.text_decimals },
        ResponseFormat::Csv => PriceFormat::Csv,
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
