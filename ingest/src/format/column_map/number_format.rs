//! Number formats of a map: `1.234,56`, `$227.55`, `45.2M`, ten-thousandths of a dollar.
//!
//! Every step uses text or an exact decimal, never a binary float.

use std::borrow::Cow;

use market::decimal::parse_figure;
use rust_decimal::Decimal;

use crate::normalize::{RowError, abbreviate};

/// Notation of the numbers in a file: separators, other characters and suffixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberFormat {
    /// Decimal separator: `.` or `,`.
    pub(super) decimal: char,
    pub(super) thousands: Option<char>,
    /// Characters that are not part of a number.
    pub(super) strip: String,
    /// True if the suffixes K, M, B and T are multipliers: `45.2M` is 45,200,000.
    pub(super) suffixes: bool,
}

impl NumberFormat {
    /// Converts a number to canonical notation, and multiplies it by a factor.
    pub(super) fn read<'a>(
        &self,
        column: &str,
        text: &'a str,
        factor: Option<Decimal>,
    ) -> Result<Cow<'a, str>, RowError> {
        let bad = |why: &str| {
            let shown = abbreviate(text.as_bytes());
            RowError::new("bad_number", format_args!("{column} {shown:?} {why}"))
        };
        let mut plain = Cow::Borrowed(text);
        if text.contains(|c| self.strip.contains(c)) {
            plain = Cow::Owned(text.chars().filter(|c| !self.strip.contains(*c)).collect());
        }
        if let Some(sign) = self.thousands
            && plain.contains(|c| is_thousands(sign, c))
        {
            let joined = self.without_thousands(sign, &plain);
            plain = Cow::Owned(joined.ok_or_else(|| {
                bad("does not group its digits by threes, as the map's numbers.thousands requires")
            })?);
        }
        if self.decimal == ',' && plain.contains(['.', ',']) {
            if plain.contains('.') {
                return Err(bad("has a point, but the map's numbers.decimal is a comma"));
            }
            plain = Cow::Owned(plain.replacen(',', ".", 1));
        }
        let unit = self.suffixes.then(|| split_multiplier(plain.trim())).flatten();
        let (number, unit) = unit.map_or((None, Decimal::ONE), |(number, unit)| (Some(number), unit));
        if number.is_none() && factor.is_none() {
            return Ok(plain);
        }
        let number = number.unwrap_or(plain.trim());
        let product = parse_figure(number)
            .ok()
            .filter(|parsed| !parsed.rounded)
            .and_then(|parsed| parsed.value.checked_mul(unit)?.checked_mul(factor.unwrap_or(Decimal::ONE)));
        product
            .map(|product| Cow::Owned(product.normalize().to_string()))
            .ok_or_else(|| bad("is not a number that the map can scale"))
    }

    /// Number without thousands separators; `None` if a separator is at a wrong position.
    fn without_thousands(&self, sign: char, text: &str) -> Option<String> {
        let trimmed = text.trim();
        let (whole, fraction) = trimmed.split_at(trimmed.find(self.decimal).unwrap_or(trimmed.len()));
        let mut groups = whole.split(|c| is_thousands(sign, c));
        let first = groups.next()?.trim_start_matches(['-', '+']);
        let grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
        let outside = fraction.contains(|c| is_thousands(sign, c));
        (grouped && !outside).then(|| text.chars().filter(|c| !is_thousands(sign, *c)).collect())
    }
}

/// True if `c` is the thousands separator `sign`. If `sign` is a space, a non-breaking or thin space counts too.
fn is_thousands(sign: char, c: char) -> bool {
    c == sign || sign == ' ' && matches!(c, '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Number and multiplier of a text: `45.2M` is 45.2 and one million.
fn split_multiplier(text: &str) -> Option<(&str, Decimal)> {
    let unit = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => 1_000,
        b'M' => 1_000_000,
        b'B' => 1_000_000_000,
        b'T' => 1_000_000_000_000_i64,
        _ => return None,
    };
    Some((text[..text.len() - 1].trim_end(), Decimal::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(decimal: char, thousands: Option<char>) -> NumberFormat {
        NumberFormat { decimal, thousands, strip: "$€".to_owned(), suffixes: true }
    }

    fn check(format: &NumberFormat, text: &str, factor: Option<&str>, expected: &str) {
        let factor = factor.map(|factor| factor.parse().unwrap());
        let found = format.read("close", text, factor).unwrap_or_else(|fault| fault.message.into());
        assert!(found == expected || found.contains("close") && found.contains(expected), "{text}: {found}");
    }

    #[test]
    fn numbers_are_read_as_the_map_says() {
        let german = format(',', Some('.'));
        check(&german, "1.234.567,89 ", None, "1234567.89 ");
        check(&german, "-1.234,5", None, "-1234.5");
        check(&german, "0,1", None, "0.1");
        check(&german, "€ 1.234,50", None, " 1234.50");
        let english = format('.', Some(','));
        check(&english, "$1,234.56", None, "1234.56");
        check(&english, "45.23M", None, "45230000");
        check(&format(',', Some(' ')), "12\u{a0}345,6", None, "12345.6");
        check(&english, "1234500", Some("0.0001"), "123.45");
        check(&english, "0.1", Some("3"), "0.3");
    }

    #[test]
    fn what_a_map_gets_wrong_is_a_fault_and_no_other_number() {
        let german = format(',', Some('.'));
        check(&german, "1.5", None, "by threes");
        check(&german, "1234.567", None, "by threes");
        check(&german, "1,234.567", None, "by threes");
        check(&format(',', None), "1.5", None, "has a point");
        check(&german, "abc", Some("2"), "is not a number");
        check(&format('.', Some(',')), "$  1,234.é", Some("2"), "is not a number");
        check(&german, "0,12345678901", Some("2"), "is not a number");
    }
}
