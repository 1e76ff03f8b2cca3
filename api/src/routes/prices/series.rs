//! Prices of one security before rendering: columns of bars, and adjustment factors, as read or derived.

use codec::bars::PackedBars;
use market::metrics::{AdjustmentFactor, DerivedRows};
use market::price::RawBars;
use market::row::JsonColumn;
use tokio_postgres::Row;

use super::price_encoder::RowLabels;
use crate::error::ApiError;
use crate::read::DataVersion;
use crate::read::past_securities::PastSecurity;

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
    /// Symbol and currency, which are the same in every row.
    pub(super) fn row_labels(&self) -> RowLabels<'_> {
        RowLabels { symbol: &self.symbol, currency: self.currency.as_deref() }
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
