//! Cells of one record, converted to typed values.

use std::borrow::Cow;
use std::cell::Cell;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};
use market::decimal::{DecimalError, ParsedDecimal, parse_decimal, parse_figure};
use market::metrics::currency::Currency;
use market::reference::{Country, Exchange, Sector};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::date::{ExchangeZone, invalid_date, parse_day, parse_time};
use super::row_error::{RowError, is_absent_value, parse_currency, parse_symbol};

/// Cells of one record, by column name.
pub(crate) struct RecordCells<'a> {
    names: &'static [&'static str],
    values: Vec<Option<Cow<'a, str>>>,
    rounded: Cell<u64>,
    zone: Option<ExchangeZone>,
}

impl<'a> RecordCells<'a> {
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        Self { names, values: vec![None; names.len()], rounded: Cell::new(0), zone: None }
    }

    /// Sets the time zone of the exchange. A UTC time that is midnight in this zone is then read as the local date.
    pub(crate) fn set_zone(&mut self, zone: Option<ExchangeZone>) {
        self.zone = zone;
    }

    /// Index of a column; `None` if the kind has no such column.
    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == column)
    }

    /// Sets the cell of the column with this index. Surrounding blanks are dropped, and an empty cell is absent.
    pub(crate) fn set(&mut self, index: usize, value: Cow<'a, str>) {
        let trimmed = match value {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
        self.values[index] = (!trimmed.is_empty()).then_some(trimmed);
    }

    /// Number of values whose excess fraction digits were rounded.
    pub(crate) fn rounded_count(&self) -> u64 {
        self.rounded.get()
    }

    /// Optional text, unchanged. Even a word for an absent value, such as `N/A`, is returned.
    pub(crate) fn text(&self, column: &str) -> Option<&str> {
        self.values[self.position(column)?].as_deref()
    }

    fn value(&self, column: &str) -> Option<&str> {
        self.text(column).filter(|text| !is_absent_value(text.as_bytes()))
    }

    /// Error for a required column without a value.
    pub(crate) fn missing_value(&self, column: &str) -> RowError {
        let Some(word) = self.text(column) else { return RowError::missing_value(column) };
        RowError::new("missing_field", format_args!("{column} {word:?} is no value: fill it in"))
    }

    /// Required text.
    pub(crate) fn required_text(&self, column: &str) -> Result<&str, RowError> {
        self.value(column).ok_or_else(|| self.missing_value(column))
    }

    /// Optional text as an owned string.
    pub(crate) fn owned_text(&self, column: &str) -> Option<String> {
        self.text(column).map(str::to_owned)
    }

    /// Optional sector. The vendor's name of a known sector is replaced by the standard name.
    pub(crate) fn sector(&self, column: &str) -> Option<String> {
        self.value(column).map(|text| Sector::find(text).map_or(text, |sector| sector.name).to_owned())
    }

    /// Optional exchange. The vendor's name of a known exchange is replaced by its market identifier code.
    pub(crate) fn exchange(&self, column: &str) -> Option<String> {
        self.value(column).map(|text| Exchange::find(text).map_or(text, |exchange| exchange.mic).to_owned())
    }

    /// Optional country. The vendor's name of a known country is replaced by its two-letter code.
    pub(crate) fn country(&self, column: &str) -> Option<String> {
        self.value(column).map(|text| Country::find(text).map_or(text, |country| country.code).to_owned())
    }

    /// Optional date.
    pub(crate) fn date(&self, column: &str) -> Result<Option<NaiveDate>, RowError> {
        let Some(text) = self.value(column) else { return Ok(None) };
        parse_day(text.as_bytes(), self.zone).map(Some).ok_or_else(|| invalid_date(column, text.as_bytes()))
    }

    /// Required date.
    pub(crate) fn required_date(&self, column: &str) -> Result<NaiveDate, RowError> {
        self.date(column)?.ok_or_else(|| self.missing_value(column))
    }

    /// Optional amount or price, with at most ten integer digits.
    pub(crate) fn amount(&self, column: &str) -> Result<Option<Decimal>, RowError> {
        self.decimal(column, parse_decimal)
    }

    /// Optional company figure, with at most 18 integer digits.
    pub(crate) fn figure(&self, column: &str) -> Result<Option<Decimal>, RowError> {
        self.decimal(column, parse_figure)
    }

    fn decimal(
        &self,
        column: &str,
        parse: fn(&str) -> Result<ParsedDecimal, DecimalError>,
    ) -> Result<Option<Decimal>, RowError> {
        let Some(text) = self.value(column) else { return Ok(None) };
        let parsed = parse(text).map_err(|error| RowError::invalid_number(column, text.as_bytes(), error))?;
        self.rounded.set(self.rounded.get() + u64::from(parsed.rounded));
        Ok(Some(parsed.value))
    }

    /// Optional whole number.
    pub(crate) fn integer<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, RowError> {
        let Some(value) = self.figure(column)? else { return Ok(None) };
        let integer = value.is_integer().then(|| i64::try_from(value.mantissa()).ok()).flatten();
        let integer = integer.and_then(|integer| T::try_from(integer).ok());
        integer.map(Some).ok_or_else(|| {
            RowError::new("bad_number", format_args!("{column} {value} is not a whole number"))
        })
    }

    /// Optional boolean.
    pub(crate) fn boolean(&self, column: &str) -> Result<Option<bool>, RowError> {
        let Some(text) = self.value(column) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" | "1" => Ok(Some(true)),
            "false" | "no" | "n" | "0" => Ok(Some(false)),
            _ => Err(RowError::new("bad_value", format_args!("{column} {text:?} must be true or false"))),
        }
    }

    /// Optional word from a fixed list, in upper or lower case.
    pub(crate) fn word<T: FromStr<Err = String>>(&self, column: &str) -> Result<Option<T>, RowError> {
        let Some(text) = self.value(column) else { return Ok(None) };
        let parsed = text.to_ascii_lowercase().parse().map(Some);
        parsed.map_err(|message: String| {
            RowError::new("bad_value", format_args!("{column} {text:?} {message}"))
        })
    }

    /// Optional symbol, in canonical spelling.
    pub(crate) fn symbol(&self, column: &str) -> Result<Option<Symbol>, RowError> {
        self.value(column).map(|text| parse_symbol(column, text)).transpose()
    }

    /// Required symbol.
    pub(crate) fn required_symbol(&self, column: &str) -> Result<Symbol, RowError> {
        self.symbol(column)?.ok_or_else(|| self.missing_value(column))
    }

    /// Optional currency.
    pub(crate) fn currency(&self, column: &str) -> Result<Option<Currency>, RowError> {
        self.value(column).map(|text| parse_currency(column, text)).transpose()
    }

    /// Optional time.
    pub(crate) fn time(&self, column: &str) -> Result<Option<DateTime<Utc>>, RowError> {
        let Some(text) = self.value(column) else { return Ok(None) };
        let message =
            format_args!("{column} {text:?} is not a time: write RFC 3339, such as 2024-03-15T21:00:00Z");
        parse_time(text).map(Some).ok_or_else(|| RowError::new("bad_date", message))
    }
}
