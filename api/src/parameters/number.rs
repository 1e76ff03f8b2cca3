//! Numeric parameters. They are bounded, and parsed exactly, without binary floats.

use std::ops::RangeInclusive;

use rust_decimal::Decimal;
use serde_json::json;

use super::ParameterReader;

/// Largest accepted number. All figures of the service are smaller.
const MAX_VALUE: i64 = 9_999_999_999_999_999;
/// Maximum length of a number, in characters. The shortest notation of every 64-bit float fits.
const MAX_LENGTH: usize = 40;

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
    if !plain || text.len() > MAX_LENGTH {
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
