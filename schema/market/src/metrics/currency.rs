//! Currencies and their minor units: pence, cents and agorot become the major unit on entry (R4).
//!
//! `GBX` and `GBp` are pence sterling, `ZAc` South African cents, `ILA` Israeli agorot. Their amounts are
//! divided by 100. The case of `GBp` matters, since `GBP` is pounds. All other codes are ISO 4217 in upper
//! case.
//! Source: quoting practice of exchanges and vendors in London, Johannesburg and Tel Aviv.

use rust_decimal::Decimal;

use crate::decimal::{MAX_FRACTION_DIGITS, round};
use crate::event::MINOR_UNIT_PLACES;

/// Currency of a feed's amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    /// ISO 4217 code of the major unit.
    pub code: String,
    /// Minor unit of the amounts (`GBX`, `ZAC`, `ILA`); `None` if they are in the major unit.
    pub minor: Option<&'static str>,
}

impl Currency {
    /// US dollar, the default of feeds that name no currency.
    pub fn dollar() -> Self {
        Self { code: "USD".to_owned(), minor: None }
    }

    /// Code of the unit that amounts are in: the minor unit, else the major one.
    pub fn unit(&self) -> &str {
        self.minor.unwrap_or(&self.code)
    }

    /// Parses a currency code; `None` unless it is three letters.
    pub fn parse(text: &str) -> Option<Self> {
        let (code, minor) = match text {
            "GBX" | "GBx" | "gbx" | "GBp" => ("GBP", Some("GBX")),
            "ZAc" | "ZAC" | "zac" => ("ZAR", Some("ZAC")),
            "ILA" | "ila" | "ILa" => ("ILS", Some("ILA")),
            _ => (text, None),
        };
        let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_code.then(|| Self { code: code.to_ascii_uppercase(), minor })
    }

    /// Converts an amount to the major unit, rounded to `MAX_FRACTION_DIGITS` like any amount on entry.
    pub fn to_major(&self, amount: Decimal) -> Decimal {
        if self.minor.is_none() {
            return amount;
        }
        let mut major = amount;
        // Moving the decimal point is exact.
        match major.set_scale(amount.scale() + MINOR_UNIT_PLACES) {
            Ok(()) => round(major, MAX_FRACTION_DIGITS),
            Err(_) => round(amount / Decimal::ONE_HUNDRED, MAX_FRACTION_DIGITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pence_become_pounds() {
        for (code, currency, value) in [
            ("GBX", "GBP", dec!(2.5)),
            ("GBp", "GBP", dec!(2.5)),
            ("GBP", "GBP", dec!(250)),
            ("ZAc", "ZAR", dec!(2.5)),
            ("ILA", "ILS", dec!(2.5)),
            ("usd", "USD", dec!(250)),
        ] {
            let unit = Currency::parse(code).unwrap();
            assert_eq!((unit.code.as_str(), unit.to_major(dec!(250))), (currency, value), "{code}");
        }
        assert_eq!(Currency::parse("GBX").unwrap().to_major(dec!(5)).to_string(), "0.05");
    }

    #[test]
    fn only_three_letters_are_a_currency() {
        for text in ["", "US", "DOLLAR", "U5D", "US$", "$$$", "12", "€UR", " eur "] {
            assert_eq!(Currency::parse(text), None, "{text}");
        }
        for code in ["GBx", "gbx", "ZAC", "zac", "ILa", "ila"] {
            assert!(Currency::parse(code).is_some_and(|unit| unit.minor.is_some()), "{code}");
        }
    }

    #[test]
    fn digits_past_the_tenth_place_are_rounded_once() {
        let pence = Currency::parse("GBX").unwrap();
        assert_eq!(pence.to_major(dec!(0.123456785)), dec!(0.0012345679));
        let longest = Decimal::from_i128_with_scale(12_345_678_901_234_567_890_123_456_789, 28);
        assert_eq!(pence.to_major(longest), dec!(0.0123456789));
    }
}
