//! Fast codec of Postgres's binary `numeric` format, for numbers that fit 64-bit arithmetic. The decimal library
//! handles all other numbers. A digit group in this format is a digit in base 10,000.
//!
//! Removal of trailing zeros from decimals, and formatting of decimals as text.
//!
//! The mantissa of nearly all decimals fits 64 bits. These decimals are processed without 96-bit division. All other
//! decimals are passed to the decimal library.

use bytes::{BufMut, BytesMut};
use rust_decimal::Decimal;

/// Base of a digit group: a group has four decimal digits.
const GROUP: u64 = 10_000;
/// Smallest mantissa that this codec does not write. Any mantissa below it fits 64 bits, even with three zeros appended
/// to fill a digit group.
const FEW: u64 = 1_000_000_000_000_000;
/// Maximum number of digit groups that fit 64 bits: 10,000^4 is less than 2^64, 10,000^5 is not.
const GROUPS: usize = 4;
/// Number of 16-bit fields before the digit groups.
const HEAD: usize = 4;
const NEGATIVE: u16 = 0x4000;

/// Writes a decimal in the binary format. Returns `false` and writes nothing if the mantissa is too large.
pub(crate) fn write(value: Decimal, out: &mut BytesMut) -> bool {
    let Ok(digits) = i64::try_from(value.mantissa()) else { return false };
    let places = value.scale();
    if digits.unsigned_abs() >= FEW {
        return false;
    }
    if digits == 0 {
        out.put_bytes(0, 8);
        return true;
    }
    let mut rest = digits.unsigned_abs() * 10u64.pow((4 - places % 4) % 4);
    let (mut groups, mut first) = ([0u16; 2 * GROUPS], 2 * GROUPS);
    while rest > 0 {
        let Ok(group) = u16::try_from(rest % GROUP) else { return false };
        first -= 1;
        groups[first] = group;
        rest /= GROUP;
    }
    let groups = &groups[first..];
    let of_fraction = places.div_ceil(4) as usize;
    // If the number is 1 or more, leave out zero groups at the end of its decimal places. The decimal library does the
    // same, so both give equal bytes.
    let whole = groups.len().saturating_sub(of_fraction);
    let zeros = groups[whole..].iter().rev().take_while(|group| **group == 0).count();
    let kept = if whole > 0 { groups.len() - zeros } else { groups.len() };
    let numbers = (i16::try_from(kept), i16::try_from(groups.len()), i16::try_from(of_fraction));
    let (Ok(kept_groups), Ok(all), Ok(of_fraction)) = numbers else { return false };
    let Ok(places) = u16::try_from(places) else { return false };
    let sign = if digits < 0 { NEGATIVE } else { 0 };
    let mut bytes = [[0; 2]; HEAD + 2 * GROUPS];
    let head = [
        kept_groups.to_be_bytes(),
        (all - of_fraction - 1).to_be_bytes(),
        sign.to_be_bytes(),
        places.to_be_bytes(),
    ];
    bytes[..HEAD].copy_from_slice(&head);
    bytes[HEAD..].iter_mut().zip(&groups[..kept]).for_each(|(bytes, group)| *bytes = group.to_be_bytes());
    out.put_slice(bytes[..HEAD + kept].as_flattened());
    true
}

/// Reads a decimal in the binary format; `None` if the bytes are invalid or the number has too many digits.
pub(crate) fn read(raw: &[u8]) -> Option<Decimal> {
    let (head, groups) = raw.split_at_checked(8)?;
    let field = |place: usize| [head[place], head[place + 1]];
    let sign = u16::from_be_bytes(field(4));
    let count = groups.len() / 2;
    let of_head = usize::from(u16::from_be_bytes(field(0)));
    if groups.len() % 2 > 0 || of_head != count || count > GROUPS || !matches!(sign, 0 | NEGATIVE) {
        return None;
    }
    let group = |pair: &[u8]| u64::from(u16::from_be_bytes([pair[0], pair[1]]));
    let digits = groups.chunks_exact(2).fold(0, |digits, pair| digits * GROUP + group(pair));
    let of_fraction = i64::try_from(count).ok()? - 1 - i64::from(i16::from_be_bytes(field(2)));
    let places = u32::try_from(of_fraction * 4).ok().filter(|places| *places <= Decimal::MAX_SCALE);
    let digits = i64::try_from(digits).ok()?;
    // Postgres leaves out zero groups at the end of a whole number. They are restored here.
    let (digits, places) = match (places, digits) {
        (_, 0) => (0, 0),
        (Some(places), digits) => (digits, places),
        (None, digits) => {
            let zeros = u32::try_from(-of_fraction).ok().filter(|groups| *groups < 4)?;
            (digits.checked_mul(10_000i64.pow(zeros))?, 0)
        }
    };
    Some(Decimal::new(if sign == NEGATIVE { -digits } else { digits }, places))
}

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
    use postgres_types::{FromSql, ToSql, Type};
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Decimal> {
        let digits = prop_oneof![
            -20_000i64..20_000,
            any::<i64>(),
            (-1_000_000_000i64..1_000_000_000).prop_map(|digits| digits * 1_000),
            (0u32..18).prop_map(|zeros| 10i64.pow(zeros)),
        ];
        (digits, 0u32..=28).prop_map(|(digits, places)| Decimal::new(digits, places))
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_the_library(value in value()) {
            let (mut found, mut expected) = (BytesMut::new(), BytesMut::new());
            let _ = value.to_sql(&Type::NUMERIC, &mut expected).unwrap();
            if write(value, &mut found) {
                prop_assert_eq!(&found, &expected, "{}", value);
            } else {
                prop_assert!(found.is_empty() && value.mantissa().unsigned_abs() >= u128::from(FEW));
            }
            let library = Decimal::from_sql(&Type::NUMERIC, &expected).unwrap();
            if let Some(read) = read(&expected) {
                prop_assert_eq!(read.normalize().to_string(), library.normalize().to_string());
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn numbers_of_postgres_are_read() {
        // Bytes that Postgres sends for `12300000::numeric`, `-0.0005`, `1.50`, `'NaN'` and `0`.
        let of = |groups: &[u16], weight: i16, sign: u16, places: u16| {
            let mut bytes = BytesMut::new();
            bytes.put_u16(u16::try_from(groups.len()).unwrap());
            bytes.put_i16(weight);
            bytes.put_u16(sign);
            bytes.put_u16(places);
            groups.iter().for_each(|group| bytes.put_u16(*group));
            read(&bytes).map(|value| value.normalize().to_string())
        };
        assert_eq!(of(&[1230], 1, 0, 0).as_deref(), Some("12300000"));
        assert_eq!(of(&[5], -1, NEGATIVE, 4).as_deref(), Some("-0.0005"));
        assert_eq!(of(&[1, 5000], 0, 0, 2).as_deref(), Some("1.5"));
        assert_eq!(of(&[], 0, 0, 0).as_deref(), Some("0"));
        assert_eq!(of(&[], 0, 0xC000, 0), None);
        assert_eq!(of(&[1, 2, 3, 4, 5], 0, 0, 16), None);
        assert_eq!(of(&[1], 30, 0, 0), None);
    }
}

#[cfg(test)]
mod digits_tests {
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
