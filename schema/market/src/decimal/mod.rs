//! Exact decimals: parsing of feed text, rounding for output, JSON and SQL encoding.
//!
//! Invariant: no conversion between a feed's digits and an answer's digits uses a binary float.

mod digits;
mod numeric;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use bytes::BytesMut;
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use digits::{shortest, text};

/// Decimal places of prices and per-share amounts in answers.
pub const PLACES_AMOUNT: u32 = 6;
/// Decimal places of percents and ratios in answers.
pub const PLACES_PERCENT: u32 = 4;
/// Decimal places of adjustment factors in answers.
pub const PLACES_FACTOR: u32 = 12;
/// Maximum fraction digits of a feed's amount or price; further digits are rounded on entry.
pub const MAX_FRACTION_DIGITS: u32 = 10;

/// Regular expression of a decimal in text.
pub const PATTERN: &str = r"^-?[0-9]+(\.[0-9]+)?$";

/// Rounds half away from zero and drops trailing zeros.
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

/// Decimal of a feed, with a mark if it was rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// Value, exact up to ten fraction digits.
    pub value: Decimal,
    /// True if the value was rounded, because the text had more than ten fraction digits.
    pub rounded: bool,
}

/// Parses a decimal exactly: optional sign, digits, point, exponent. Floats, grouping signs and NaN are
/// errors.
pub fn parse_decimal(text: &str) -> Result<ParsedDecimal, DecimalError> {
    let value = match parse_plain(text.as_bytes()) {
        Some(value) => value,
        None => parse_general(text)?,
    };
    let limited = limit(value)?;
    Ok(ParsedDecimal { value: limited, rounded: limited != value })
}

/// Parses a company figure (a share count or an amount of money) exactly: up to 18 integer digits.
pub fn parse_figure(text: &str) -> Result<ParsedDecimal, DecimalError> {
    let value = match parse_plain(text.as_bytes()) {
        Some(value) => value,
        None => parse_general(text)?,
    };
    if value.abs() >= Decimal::from(1_000_000_000_000_000_000i64) {
        return Err(DecimalError::TooLarge);
    }
    let limited = value.round_dp_with_strategy(MAX_FRACTION_DIGITS, RoundingStrategy::MidpointAwayFromZero);
    Ok(ParsedDecimal { value: limited.normalize(), rounded: limited != value })
}

/// Checks the digit limits of amounts and prices, and normalizes the value.
pub fn limit(value: Decimal) -> Result<Decimal, DecimalError> {
    let value = value.round_dp_with_strategy(MAX_FRACTION_DIGITS, RoundingStrategy::MidpointAwayFromZero);
    if value.abs() >= Decimal::from(10_000_000_000i64) {
        return Err(DecimalError::TooLarge);
    }
    Ok(value.normalize())
}

/// Fast path: up to 18 significant digits without an exponent.
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
    // Digits past the 28th cannot affect ten places, so cutting them keeps the result exact.
    text.parse::<Decimal>().map_err(|_| DecimalError::Malformed)
}

thread_local! {
    static AS_TEXT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` on this thread. Every [`ExactDecimal`] is then serialized as a JSON string (`decimals=string`).
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
    /// Price or per-share amount, at most 6 places.
    pub fn amount(value: Decimal) -> Self {
        Self(round(value, PLACES_AMOUNT))
    }
    /// Percent or ratio, at most 4 places.
    pub fn percent(value: Decimal) -> Self {
        Self(round(value, PLACES_PERCENT))
    }
    /// Adjustment factor, at most 12 places.
    pub fn factor(value: Decimal) -> Self {
        Self(round(value, PLACES_FACTOR))
    }
    /// Decimal text.
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
        // Stored numbers have no trailing zeros, but binary `numeric` pads the scale to groups of four
        // digits.
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
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, DecimalError>) {
        assert_eq!(parse_decimal(text).map(|p| p.value.to_string()), expected.map(str::to_owned), "{text}");
    }

    #[test]
    fn reads_numbers_digit_for_digit() {
        check("1.10", Ok("1.1"));
        check("-0.000001", Ok("-0.000001"));
        check("+7", Ok("7"));
        check(".5", Ok("0.5"));
        check("1e-05", Ok("0.00001"));
        check("9999999999.9999999999", Ok("9999999999.9999999999"));
        check("0.12345678905", Ok("0.1234567891"));
    }

    #[test]
    fn refuses_what_is_not_a_number() {
        for text in ["", "-", ".", "NaN", "inf", "1,000", "1 000", "0x1", "--1", "1.2.3"] {
            check(text, Err(DecimalError::Malformed));
        }
        check("10000000000", Err(DecimalError::TooLarge));
        check("99999999999999999999999999999999", Err(DecimalError::TooLarge));
        // Nor are numbers with signs among their digits, however many these are.
        for text in ["1_000", "12-5", "2024-06-28", "1234567890123456789012345-78"] {
            check(text, Err(DecimalError::Malformed));
        }
    }

    #[test]
    fn numbers_as_feeds_write_them_are_read_the_fast_way_and_as_the_other_way_reads_them() {
        for (text, mantissa, scale) in [
            ("0.22", 22, 2),
            ("145.00", 14_500, 2),
            ("7", 7, 0),
            (".5", 5, 1),
            ("-0.25", -25, 2),
            ("+3.10", 310, 2),
            ("0", 0, 0),
            ("123456789012.345678", 123_456_789_012_345_678, 6),
            ("999999999999999999", 999_999_999_999_999_999, 0),
        ] {
            let value = Decimal::new(mantissa, scale);
            assert_eq!(
                (parse_plain(text.as_bytes()), parse_general(text)),
                (Some(value), Ok(value)),
                "{text}"
            );
        }
        for other in ["1234567890123456789", "1e5", "1.2.3", "-", "", "ten"] {
            assert_eq!(parse_plain(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_column_gives_back_the_number() {
        for text in ["0", "1.1", "-0.000001", "100", "9999999999.9999999999"] {
            let (value, mut column) = (ExactDecimal(text.parse().unwrap()), bytes::BytesMut::new());
            let _ = value.to_sql(&Type::NUMERIC, &mut column).unwrap();
            // Equal numbers may differ in their zeros, which answers would show.
            assert_eq!(ExactDecimal::from_sql(&Type::NUMERIC, &column).unwrap().0.to_string(), text);
        }
        // Of no other type: a float's digits are not a feed's, and a text is no sum.
        for ty in [Type::NUMERIC, Type::FLOAT8, Type::INT8, Type::TEXT] {
            let taken = (<ExactDecimal as ToSql>::accepts(&ty), <ExactDecimal as FromSql>::accepts(&ty));
            let numeric = ty == Type::NUMERIC;
            assert_eq!(taken, (numeric, numeric), "{ty}");
        }
    }

    #[test]
    fn leaves_as_number_or_text() {
        let value = ExactDecimal("1.10".parse().unwrap_or_default());
        assert_eq!(serde_json::to_string(&value).ok().as_deref(), Some("1.10"));
        assert_eq!(with_decimals_as_text(|| serde_json::to_string(&value)).ok().as_deref(), Some("\"1.10\""));
    }

    #[test]
    fn excess_digits_are_rounded_and_said_so() {
        for (text, value, rounded) in [
            ("0.1234567890", "0.123456789", false),
            ("0.12345678905", "0.1234567891", true),
            ("-0.12345678905", "-0.1234567891", true),
            ("0.12345678904", "0.123456789", true),
            ("1234567890123456789012345678e-20", "12345678.9012345679", true),
            ("+0000000001.50", "1.5", false),
            ("1E2", "100", false),
            ("-1e-3", "-0.001", false),
            ("0.0000000000000000001", "0", true),
        ] {
            let found = parse_decimal(text).unwrap();
            assert_eq!((found.value.to_string().as_str(), found.rounded), (value, rounded), "{text}");
        }
    }

    #[test]
    fn amounts_have_ten_integer_digits_and_figures_eighteen() {
        check("-9999999999.5", Ok("-9999999999.5"));
        check("-10000000000", Err(DecimalError::TooLarge));
        check("9999999999.99999999996", Err(DecimalError::TooLarge));
        check("1e10", Err(DecimalError::TooLarge));
        check("0000000000000000000000000000012", Ok("12"));
        check("1e5e5", Err(DecimalError::Malformed));
        let figure = |text: &str| parse_figure(text).map(|found| (found.value.to_string(), found.rounded));
        assert_eq!(figure("999999999999999999"), Ok(("999999999999999999".to_owned(), false)));
        assert_eq!(figure("-1000000000000000000"), Err(DecimalError::TooLarge));
        assert_eq!(figure("1000000000000000000"), Err(DecimalError::TooLarge));
        assert_eq!(figure("123456789012.50"), Ok(("123456789012.5".to_owned(), false)));
        assert_eq!(figure("0.12345678905"), Ok(("0.1234567891".to_owned(), true)));
        assert_eq!(figure("1e17"), Ok(("100000000000000000".to_owned(), false)));
        assert_eq!(figure("none"), Err(DecimalError::Malformed));
        // The 28 digits that a decimal holds, and one more.
        check(&format!("0.{}", "3".repeat(60)), Ok("0.3333333333"));
        assert_eq!(figure(&"9".repeat(28)), Err(DecimalError::TooLarge));
        assert_eq!(figure(&"9".repeat(29)), Err(DecimalError::TooLarge));
    }

    #[test]
    fn answers_have_the_places_of_their_kind() {
        let value = "0.12345678912345".parse().unwrap();
        let rounded =
            [ExactDecimal::amount(value), ExactDecimal::percent(value), ExactDecimal::factor(value)];
        assert_eq!(rounded.map(|value| value.to_string()), ["0.123457", "0.1235", "0.123456789123"]);
        assert_eq!(ExactDecimal::amount("-0.0000005".parse().unwrap()).to_string(), "-0.000001");
        assert_eq!(ExactDecimal::from("1.500".parse::<Decimal>().unwrap()).to_string(), "1.5");
        assert_eq!(format!("{:?}", ExactDecimal::percent(value)), "0.1235");
    }

    #[test]
    fn numbers_and_texts_are_read_digit_for_digit() {
        for (json, value) in
            [("1.10", "1.10"), ("\"1.10\"", "1.10"), ("1e2", "100"), ("-0.000001", "-0.000001")]
        {
            let read: ExactDecimal = serde_json::from_str(json).unwrap();
            assert_eq!(read.0, value.parse().unwrap(), "{json}");
        }
        assert!(serde_json::from_str::<ExactDecimal>("\"much\"").is_err());
        // Written as text only as long as it is asked for.
        with_decimals_as_text(|| {
            assert_eq!(
                with_decimals_as_text(|| serde_json::to_string(&ExactDecimal::default()).unwrap()),
                "\"0\""
            )
        });
        assert_eq!(serde_json::to_string(&ExactDecimal::default()).unwrap(), "0");
    }

    proptest::proptest! {
        #[test]
        fn feed_text_to_answer_text_is_the_same_number(mantissa in -99_999_999_999_999_999i64..99_999_999_999_999_999, scale in 7u32..=10) {
            let text = Decimal::new(mantissa, scale).to_string();
            let parsed = parse_decimal(&text).map(|p| p.value);
            let json = serde_json::to_string(&ExactDecimal(parsed.unwrap_or_default())).unwrap_or_default();
            proptest::prop_assert_eq!(json.parse::<Decimal>().ok(), text.parse::<Decimal>().ok());
        }
    }
}
