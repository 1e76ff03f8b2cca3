//! Exact decimals: parsing of feed text, rounding for output, JSON and SQL encoding.
//!
//! Invariant: a decimal never passes through a binary float on its way from a feed to a response.

mod numeric;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use bytes::BytesMut;
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use numeric::{shortest, text};

/// Decimal places of prices and per-share amounts in responses.
pub const PLACES_AMOUNT: u32 = 6;
/// Decimal places of percents and ratios in responses.
pub const PLACES_PERCENT: u32 = 4;
/// Decimal places of adjustment factors in responses.
pub const PLACES_FACTOR: u32 = 12;
/// Maximum number of decimal places of an amount or price from a feed. Ingest rounds values with more places.
pub const MAX_FRACTION_DIGITS: u32 = 10;

/// Regular expression that matches a decimal as text.
pub const PATTERN: &str = r"^-?[0-9]+(\.[0-9]+)?$";

/// Rounds a decimal to `places` decimal places and removes trailing zeros. Halves are rounded away from zero.
pub fn round(value: Decimal, places: u32) -> Decimal {
    shortest(value.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero))
}

/// Error in a decimal from a feed.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    #[error("is not a decimal number")]
    Malformed,
    #[error("has too many integer digits")]
    TooLarge,
}

/// Decimal parsed from a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// Parsed value, rounded to ten decimal places.
    pub value: Decimal,
    /// True if rounding to ten decimal places changed the value.
    pub rounded: bool,
}

/// Parses an amount or price with an optional sign, decimal point and exponent. No binary float is used. Grouping
/// characters and NaN are errors.
pub fn parse_decimal(text: &str) -> Result<ParsedDecimal, DecimalError> {
    let value = parse(text)?;
    let limited = limit(value)?;
    Ok(ParsedDecimal { value: limited, rounded: limited != value })
}

/// Parses a company figure (a share count or an amount of money) with up to 18 integer digits. No binary float is used.
pub fn parse_figure(text: &str) -> Result<ParsedDecimal, DecimalError> {
    let value = parse(text)?;
    if value.abs() >= Decimal::from(1_000_000_000_000_000_000i64) {
        return Err(DecimalError::TooLarge);
    }
    let limited = value.round_dp_with_strategy(MAX_FRACTION_DIGITS, RoundingStrategy::MidpointAwayFromZero);
    Ok(ParsedDecimal { value: limited.normalize(), rounded: limited != value })
}

/// Rounds an amount or price to [`MAX_FRACTION_DIGITS`] and removes trailing zeros. More than ten integer digits are an
/// error.
pub fn limit(value: Decimal) -> Result<Decimal, DecimalError> {
    let value = value.round_dp_with_strategy(MAX_FRACTION_DIGITS, RoundingStrategy::MidpointAwayFromZero);
    if value.abs() >= Decimal::from(10_000_000_000i64) {
        return Err(DecimalError::TooLarge);
    }
    Ok(value.normalize())
}

fn parse(text: &str) -> Result<Decimal, DecimalError> {
    parse_plain(text.as_bytes()).map_or_else(|| parse_general(text), Ok)
}

/// Parses a decimal text that has at most 18 digits and no exponent; `None` for any other text.
fn parse_plain(bytes: &[u8]) -> Option<Decimal> {
    let (negative, digits) = match bytes.first()? {
        b'-' => (true, &bytes[1..]),
        b'+' => (false, &bytes[1..]),
        _ => (false, bytes),
    };
    let (mut mantissa, mut scale, mut seen, mut point) = (0i64, 0u32, 0u32, false);
    for byte in digits {
        match byte {
            b'0'..=b'9' => {
                seen += 1;
                if seen > 18 {
                    return None;
                }
                mantissa = mantissa * 10 + i64::from(byte - b'0');
                scale += u32::from(point);
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    (seen > 0).then(|| Decimal::new(if negative { -mantissa } else { mantissa }, scale))
}

fn parse_general(text: &str) -> Result<Decimal, DecimalError> {
    let valid = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    if !valid || !text.bytes().any(|b| b.is_ascii_digit()) {
        return Err(DecimalError::Malformed);
    }
    if text.contains(['e', 'E']) {
        return Decimal::from_scientific(text).map_err(|_| DecimalError::Malformed);
    }
    let integer_digits = text.trim_start_matches(['+', '-', '0']).split('.').next().map_or(0, str::len);
    if integer_digits > 28 {
        return Err(DecimalError::TooLarge);
    }
    // The decimal library rounds after 28 significant digits. With at most 18 integer digits, the first ten decimal
    // places therefore stay exact.
    text.parse::<Decimal>().map_err(|_| DecimalError::Malformed)
}

thread_local! {
    static AS_TEXT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`. During the call, each [`ExactDecimal`] of this thread is serialized as a JSON string (query parameter
/// `decimals=string`).
pub fn with_decimals_as_text<T>(body: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            AS_TEXT.set(self.0);
        }
    }
    let _reset = Reset(AS_TEXT.replace(true));
    body()
}

/// Decimal that is serialized as an exact JSON number, digit for digit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ExactDecimal(pub Decimal);

impl ExactDecimal {
    /// Rounds a price or per-share amount to 6 decimal places.
    pub fn amount(value: Decimal) -> Self {
        Self(round(value, PLACES_AMOUNT))
    }
    /// Rounds a percent or ratio to 4 decimal places.
    pub fn percent(value: Decimal) -> Self {
        Self(round(value, PLACES_PERCENT))
    }
    /// Rounds an adjustment factor to 12 decimal places.
    pub fn factor(value: Decimal) -> Self {
        Self(round(value, PLACES_FACTOR))
    }
    /// Text of the decimal.
    pub fn text(self) -> String {
        text(self.0)
    }
}

impl fmt::Debug for ExactDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for ExactDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<Decimal> for ExactDecimal {
    fn from(value: Decimal) -> Self {
        Self(shortest(value))
    }
}

impl Serialize for ExactDecimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if AS_TEXT.get() {
            return serializer.serialize_str(&text(self.0));
        }
        let text = text(self.0);
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(&text).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExactDecimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        let text = raw.get().trim_matches('"');
        text.parse().or_else(|_| Decimal::from_scientific(text)).map(Self).map_err(serde::de::Error::custom)
    }
}

impl ToSql for ExactDecimal {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if numeric::write(self.0, out) { Ok(IsNull::No) } else { self.0.to_sql(ty, out) }
    }
    fn accepts(ty: &Type) -> bool {
        <Decimal as ToSql>::accepts(ty)
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for ExactDecimal {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        // Postgres's binary `numeric` pads the decimal places to a multiple of four. `Self::from` removes the added
        // zeros.
        numeric::read(raw).map_or_else(|| Decimal::from_sql(ty, raw), Ok).map(Self::from)
    }
    fn accepts(ty: &Type) -> bool {
        <Decimal as FromSql>::accepts(ty)
    }
}

impl utoipa::PartialSchema for ExactDecimal {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, SchemaType, Type};
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Number, Type::String]))
            .description(Some("Exact decimal: a JSON number, or a string with decimals=string."))
            .format(Some(SchemaFormat::Custom("decimal".to_owned())))
            .pattern(Some(PATTERN))
            .into()
    }
}

impl utoipa::ToSchema for ExactDecimal {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Exact")
    }
}

#[cfg(test)]
mod tests;
