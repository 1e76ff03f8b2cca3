//! Removal of trailing zeros from decimals, and formatting of decimals as text.
//!
//! The mantissa of nearly all decimals fits 64 bits. These decimals are processed without 96-bit division. All other
//! decimals are passed to the decimal library.

use rust_decimal::Decimal;

/// Removes trailing zeros after the decimal point.
pub(crate) fn shortest(value: Decimal) -> Decimal {
    // Nearly every mantissa fits 64 bits. Dividing 64 bits by ten takes a tenth of the time of dividing 96 bits.
    let (Ok(mut digits), mut places) = (i64::try_from(value.mantissa()), value.scale()) else {
        return value.normalize();
    };
    while places > 0 && digits % 10 == 0 {
        digits /= 10;
        places -= 1;
    }
    Decimal::new(digits, places)
}

/// Formats a number like [`Decimal`]'s `Display`.
pub(crate) fn text(value: Decimal) -> String {
    let Ok(digits) = i64::try_from(value.mantissa()) else { return value.to_string() };
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(digits);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let places = value.scale() as usize;
    let mut text = String::with_capacity(LONGEST);
    text.push_str(sign);
    match digits.split_at_checked(digits.len().wrapping_sub(places)) {
        _ if places == 0 => text.push_str(digits),
        Some((whole, fraction)) if !whole.is_empty() => {
            text.push_str(whole);
            text.push('.');
            text.push_str(fraction);
        }
        _ => {
            text.push_str("0.");
            text.push_str(&ZEROS[..places - digits.len()]);
            text.push_str(digits);
        }
    }
    text
}

/// Length of the longest formatted decimal, in bytes: sign, zero, point and 28 decimal places.
const LONGEST: usize = 3 + ZEROS.len();

/// 28 zeros, for the zeros between the decimal point and the digits of the mantissa. A decimal has at most 28 decimal
/// places, so more zeros are never needed.
const ZEROS: &str = "0000000000000000000000000000";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_has_the_text_and_the_digits_that_the_library_gives_it(
            digits in prop_oneof![any::<i64>().prop_map(i128::from), -2_000i128..2_000, -(1i128 << 95)..(1i128 << 95)],
            places in 0u32..=28,
            zeros in 0u32..6,
        ) {
            let digits = digits / 10i128.pow(zeros) * 10i128.pow(zeros);
            let value = Decimal::from_i128_with_scale(digits, places);
            prop_assert_eq!(text(value), value.to_string());
            prop_assert_eq!(text(shortest(value)), value.normalize().to_string());
        }
    }
}
