//! Filter parameters: numbers, date ranges, and names such as sectors.
//!
//! Numbers are bounded, and parsed exactly, without binary floats. Names are mapped to the spelling that responses use.

use std::ops::RangeInclusive;

use chrono::NaiveDate;
use market::metrics::currency::Currency;
use rust_decimal::Decimal;
use serde_json::json;

use super::facets::FilterField;
use super::{ParameterError, ParameterReader};

/// Largest accepted number. All figures of the service are smaller.
const MAX_VALUE: i64 = 9_999_999_999_999_999;
/// Maximum length of a number, in characters. The shortest notation of every 64-bit float fits.
const MAX_NUMBER_LENGTH: usize = 40;

/// Bounds of a decimal parameter, both inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bounds {
    /// 0 to 1000 percentage points.
    Percent,
    /// -1000 to 1000 percentage points.
    SignedPercent,
    /// 0 or more.
    Amount,
    /// The given minimum or more.
    AtLeast(i64),
    /// Any representable number.
    Any,
}

impl Bounds {
    fn range(self) -> (i64, i64) {
        match self {
            Self::Percent => (0, 1_000),
            Self::SignedPercent => (-1_000, 1_000),
            Self::Amount => (0, MAX_VALUE),
            Self::AtLeast(least) => (least, MAX_VALUE),
            Self::Any => (-MAX_VALUE, MAX_VALUE),
        }
    }
}

impl ParameterReader<'_> {
    /// Reads an integer. Returns `default` if the parameter is absent. A value outside the bounds is an error.
    pub(crate) fn read_integer(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<i64>,
        default: i64,
    ) -> i64 {
        let (low, high) = bounds.clone().into_inner();
        let schema = || json!({ "type": "integer", "minimum": low, "maximum": high, "default": default });
        let Some(value) = self.read_value(name, schema) else { return default };
        let number = plain_integer(&value).filter(|number| bounds.contains(number));
        if number.is_none() {
            self.refuse_number(name, "an integer", low, high);
        }
        number.unwrap_or(default)
    }

    /// Reads a decimal within bounds, parsed exactly; `None` if absent or invalid.
    pub(crate) fn read_decimal(&mut self, name: &'static str, bounds: Bounds) -> Option<Decimal> {
        let (low, high) = bounds.range();
        let schema = || json!({ "type": "number", "format": "decimal", "minimum": low, "maximum": high });
        let value = self.read_value(name, schema)?;
        let number =
            threshold(&value).filter(|number| (Decimal::from(low)..=Decimal::from(high)).contains(number));
        if number.is_none() {
            self.refuse_number(name, "a number", low, high);
        }
        number
    }

    /// Reads the upper bound of a range from the parameter `high`. Records an error if it is below `least`, the value
    /// of the parameter `low`.
    pub(crate) fn read_maximum(
        &mut self,
        high: &'static str,
        bounds: Bounds,
        low: &str,
        least: Option<Decimal>,
    ) -> Option<Decimal> {
        let most = self.read_decimal(high, bounds);
        let ordered = least.zip(most).is_none_or(|(least, most)| least <= most);
        self.require(ordered, low, &format!("is greater than {high}"));
        most
    }

    fn refuse_number(&mut self, name: &str, what: &str, low: i64, high: i64) {
        let allowed = json!({ "minimum": low, "maximum": high });
        self.add_error(name, format!("is not {what} from {low} to {high}"), Some(allowed));
    }
}

fn plain_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Parses a number in JSON notation. Returns `None` for a malformed text, or a number that is too large.
fn threshold(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let plain = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.'))
        && digits.starts_with(|c: char| c.is_ascii_digit());
    if !plain || text.len() > MAX_NUMBER_LENGTH {
        return None;
    }
    let mantissa: Decimal = mantissa.parse().ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let value = match u32::try_from(exponent) {
        Ok(power) => {
            mantissa.checked_mul(Decimal::try_from_i128_with_scale(10i128.checked_pow(power)?, 0).ok()?)?
        }
        Err(_) => shifted(mantissa, exponent.unsigned_abs()),
    };
    Some(value.normalize())
}

/// Divides a number by 10^`places`. A nonzero result with more than 28 decimal places becomes the `Decimal` next to
/// zero, with the same sign.
fn shifted(number: Decimal, places: u32) -> Decimal {
    let scale = places.saturating_add(number.scale());
    // No nonzero figure of the service is that close to zero, so the result of a filter does not change.
    let smallest = || match number {
        zero if zero.is_zero() => zero,
        negative if negative.is_sign_negative() => Decimal::new(-1, Decimal::MAX_SCALE),
        _ => Decimal::new(1, Decimal::MAX_SCALE),
    };
    Decimal::try_from_i128_with_scale(number.mantissa(), scale).unwrap_or_else(|_| smallest())
}

/// Date range with inclusive bounds. If a bound is `None`, the range is unlimited on that side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DateRange {
    pub(crate) start: Option<NaiveDate>,
    pub(crate) end: Option<NaiveDate>,
}

impl DateRange {
    /// True if the range includes a date. A range with a bound does not include an unknown date (`None`).
    fn includes(self, date: Option<NaiveDate>) -> bool {
        self.start.is_none_or(|start| date.is_some_and(|date| start <= date))
            && self.end.is_none_or(|end| date.is_some_and(|date| date <= end))
    }
}

/// Date ranges for the declaration date and the record date of a dividend.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OtherDateRanges {
    pub(crate) declared: DateRange,
    pub(crate) record: DateRange,
}

impl OtherDateRanges {
    /// True if the ranges include the declaration date and the record date of a dividend.
    pub(crate) fn include(&self, declared: Option<NaiveDate>, record: Option<NaiveDate>) -> bool {
        self.declared.includes(declared) && self.record.includes(record)
    }
}

/// Names of the parameters in [`OtherDateRanges`].
pub(crate) const OTHER_DATE_PARAMETERS: [&str; 4] =
    ["declared_from", "declared_to", "record_from", "record_to"];

impl ParameterReader<'_> {
    /// Reads a day. The request is refused later if this day is before the start of the history in the account's plan.
    pub(crate) fn read_day_of_history(&mut self, name: &'static str) -> Option<NaiveDate> {
        let day = self.read_date(name);
        self.properties.oldest_day = day;
        day
    }

    /// Reads `end_date`. Records an error if it is earlier than `start_date`, which the caller has read already.
    pub(crate) fn read_end_date(&mut self, start_date: Option<NaiveDate>) -> Option<NaiveDate> {
        self.read_last_day("end_date", "start_date", start_date)
    }

    /// Reads the range of the declaration date.
    pub(crate) fn read_declared_range(&mut self) -> DateRange {
        let [declared_from, declared_to, ..] = OTHER_DATE_PARAMETERS;
        let declared = self.read_days(declared_from, declared_to);
        self.describe(declared_from, "First declaration date.");
        self.describe(declared_to, "Last declaration date.");
        declared
    }

    /// Reads the ranges of the declaration date and the record date.
    pub(crate) fn read_other_date_ranges(&mut self) -> OtherDateRanges {
        let [.., record_from, record_to] = OTHER_DATE_PARAMETERS;
        let declared = self.read_declared_range();
        let record = self.read_days(record_from, record_to);
        self.describe(record_from, "First record date.");
        self.describe(record_to, "Last record date.");
        OtherDateRanges { declared, record }
    }

    /// Reads a range from the parameters `first` and `last`.
    fn read_days(&mut self, first: &'static str, last: &'static str) -> DateRange {
        let start = self.read_date(first);
        DateRange { start, end: self.read_last_day(last, first, start) }
    }

    /// Reads the last day of a range from the parameter `last`. Records an error if it is before `start`, the value of
    /// the parameter `first`.
    pub(crate) fn read_last_day(
        &mut self,
        last: &'static str,
        first: &str,
        start: Option<NaiveDate>,
    ) -> Option<NaiveDate> {
        let end = self.read_date(last);
        let ordered = start.zip(end).is_none_or(|(start, end)| start <= end);
        self.require(ordered, last, &format!("is before {first}"));
        end
    }
}

/// Maximum length of a list of names, in characters.
const MAX_NAMES_LENGTH: usize = 512;

impl ParameterReader<'_> {
    /// Reads the comma-separated names of `field`, and maps them to the names in responses. With a cursor, or without a
    /// facet index, unknown names are accepted.
    pub(crate) fn read_names(&mut self, field: FilterField) -> Option<Vec<String>> {
        let text = self.read_text(field.as_str(), MAX_NAMES_LENGTH)?;
        let as_written = || text.split(',').map(|name| name.trim().to_owned()).collect();
        let Some(facet_index) = self.facet_index else {
            self.properties.needs_facet_index = true;
            return Some(as_written());
        };
        match facet_index.resolve(field, &text) {
            Ok(names) => Some(names),
            Err(_) if facet_index.is_empty() || self.is_given("cursor") => Some(as_written()),
            Err(unknown) => {
                self.errors.push(ParameterError::unknown_value(field.as_str(), unknown));
                None
            }
        }
    }

    /// Reads a required currency, an ISO 4217 code. A minor unit such as GBX is refused.
    pub(crate) fn read_required_currency(&mut self, name: &'static str) -> String {
        let currency = self.read_currency(name);
        self.require_given(name);
        currency.unwrap_or_default()
    }

    /// Reads a currency, an ISO 4217 code.
    pub(crate) fn read_currency(&mut self, name: &'static str) -> Option<String> {
        let text = self.read_value(name, || json!({ "type": "string", "pattern": "^[A-Za-z]{3}$" }))?;
        let currency = Currency::parse(&text);
        let is_major = currency.as_ref().is_some_and(|currency| currency.minor.is_none());
        self.require(is_major, name, "is not an ISO 4217 currency code such as USD");
        currency.map(|currency| currency.code)
    }

    /// Reads `currency`: a comma-separated list of ISO 4217 codes, returned in upper case.
    pub(crate) fn read_currencies(&mut self) -> Option<Vec<String>> {
        let schema = || json!({ "type": "array", "minItems": 1, "items": { "type": "string", "pattern": "^[A-Za-z]{3}$" } });
        let text = self.read_value("currency", schema)?;
        let codes: Vec<String> = text.split(',').map(|code| code.trim().to_uppercase()).collect();
        let shaped = codes.iter().all(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()));
        self.require(shaped, "currency", "has an item that is not a currency code of three letters");
        Some(codes)
    }
}

/// True if a row with this value passes the filter `wanted`. Without a filter (`None`), every row passes. With a
/// filter, a row with an unknown value (`None`) does not pass.
pub(crate) fn is_among<T: PartialEq>(wanted: Option<&Vec<T>>, value: Option<&T>) -> bool {
    wanted.is_none_or(|wanted| value.is_some_and(|value| wanted.contains(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let expected = expected.map(|text| text.parse::<Decimal>().expect("a decimal"));
        assert_eq!(threshold(text), expected, "{text}");
    }

    #[test]
    fn numbers_are_read_as_json_writes_them() {
        check("0.52", Some("0.52"));
        check("-3", Some("-3"));
        check("3000000000000", Some("3000000000000"));
        check("1.5e3", Some("1500"));
        check("1E-5", Some("0.00001"));
        check("5e-324", Some("0.0000000000000000000000000001"));
        check("-2.5e-30", Some("-0.0000000000000000000000000001"));
        check("0e-99", Some("0"));
        for text in ["", ".", "-", "e5", ".5", "1e", "1e400", "1e99999999999", "NaN", "0x1", "1,5", "1 "] {
            check(text, None);
        }
    }
}
