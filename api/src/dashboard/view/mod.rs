//! Building blocks of pages: layout, numbers, charts, tables, static assets, text and the live example.
//!
//! Numbers as text for readers: rounded, and with thousands separators. Decimals are rounded exactly, half away from
//! zero.

pub(crate) mod chart;
pub(crate) mod layout;
pub(crate) mod live_example;
pub(crate) mod markdown;
pub(crate) mod plot;

use std::fmt::Display;

use rust_decimal::{Decimal, RoundingStrategy};

/// Decimal places of an amount below [`CENT`], which two places would show as zero.
const SMALL_PLACES: u32 = 6;
const CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// Units of large numbers.
const UNITS: [(i64, &str); 3] = [(1_000_000_000_000, "T"), (1_000_000_000, "B"), (1_000_000, "M")];

/// Formats a number with at least `least` and at most `most` decimal places.
pub(crate) fn format_decimal(number: Decimal, least: u32, most: u32) -> String {
    let mut rounded = number.round_dp_with_strategy(most, RoundingStrategy::MidpointAwayFromZero).normalize();
    if rounded.scale() < least {
        rounded.rescale(least);
    }
    let text = rounded.to_string();
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{}{fraction}", group_digits(whole))
}

/// Formats an amount of money with at least 2 decimal places. An amount below one cent has up to 6.
pub(crate) fn format_amount(amount: Decimal, most: u32) -> String {
    let is_small = !amount.is_zero() && amount.abs() < CENT;
    format_decimal(amount, 2, if is_small { SMALL_PLACES } else { most })
}

/// Formats a large number with two decimal places and its unit: `T` (10¹²), `B` (10⁹) or `M` (10⁶). A number that rounds
/// to less than a million has no unit.
pub(crate) fn format_large(number: Decimal) -> String {
    let is_reached = |unit: i64| number.abs() >= Decimal::from(unit / 1_000_000 * 999_995);
    match UNITS.into_iter().find(|(unit, _)| is_reached(*unit)) {
        Some((unit, letter)) => format!("{}{letter}", format_decimal(number / Decimal::from(unit), 2, 2)),
        None => format_decimal(number, 0, 0),
    }
}

/// Formats a whole number with thousands separators.
pub(crate) fn format_grouped(number: impl Display) -> String {
    group_digits(&number.to_string())
}

/// Formats a number with its noun, in the singular or plural.
pub(crate) fn format_count(number: impl Display, one: &str, many: &str) -> String {
    let number = format_grouped(number);
    let noun = if number == "1" { one } else { many };
    format!("{number} {noun}")
}

/// Inserts thousands separators into the digits of a whole number.
fn group_digits(number: &str) -> String {
    let (sign, digits) = number.split_at(number.len() - number.trim_start_matches('-').len());
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    #[test]
    fn numbers_are_grouped() {
        let grouped = [999, 1_000_000, -100, -1_000].map(format_grouped);
        assert_eq!(grouped, ["999", "1,000,000", "-100", "-1,000"]);
        assert_eq!(
            (format_count(1, "call", "calls"), format_count(0, "call", "calls")),
            ("1 call".to_owned(), "0 calls".to_owned())
        );
    }

    #[test]
    fn decimals_are_rounded_half_away_from_zero() {
        for (exact, shown) in [
            ("3.21499999999999999999", "3.21"),
            ("3.215", "3.22"),
            ("-3.215", "-3.22"),
            ("1234567.5", "1,234,567.50"),
            ("-0.004", "0.00"),
            ("7", "7.00"),
        ] {
            assert_eq!(format_decimal(number(exact), 2, 2), shown, "{exact}");
        }
        assert_eq!(format_decimal(number("12.50"), 0, 4), "12.5");
    }

    #[test]
    fn an_amount_has_the_decimals_that_it_needs() {
        for (exact, price, a_share) in [
            ("63.125", "63.13", "63.125"),
            ("0.485", "0.49", "0.485"),
            ("0.51", "0.51", "0.51"),
            ("0.01453", "0.01", "0.0145"),
            ("0.00034", "0.00034", "0.00034"),
            ("0", "0.00", "0.00"),
        ] {
            let amount = number(exact);
            assert_eq!([format_amount(amount, 2), format_amount(amount, 4)], [price, a_share], "{exact}");
        }
    }

    #[test]
    fn a_large_number_has_the_unit_of_its_rounded_value() {
        for (exact, shown) in [
            ("2650000000000", "2.65T"),
            ("999999999", "1.00B"),
            ("12345678.9", "12.35M"),
            ("-12345678.9", "-12.35M"),
            ("850000.4", "850,000"),
            ("999994.4", "999,994"),
        ] {
            assert_eq!(format_large(number(exact)), shown);
        }
    }
}
