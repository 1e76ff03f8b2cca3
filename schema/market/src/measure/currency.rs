//! Minor currency units (R4): pence, cents and agorot become the major unit on entry.
//!
//! `GBX` and `GBp` are pence sterling, `ZAc` South African cents, `ILA` Israeli agorot: amounts are divided by 100.
//! The case of `GBp` matters, since `GBP` is pounds. Everything else is an ISO 4217 code in upper case.
//! Source: how exchanges and vendors quote London, Johannesburg and Tel Aviv.

use rust_decimal::Decimal;

/// A currency as a feed writes it, and what its numbers are to be divided by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// ISO 4217 code of the major unit.
    pub currency: String,
    /// Whether amounts are in hundredths of it.
    pub minor: bool,
}

impl Unit {
    /// Reads a currency code; `None` unless it is three letters.
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.trim();
        let minor = |currency: &str| Some(Self { currency: currency.to_owned(), minor: true });
        match code {
            "GBp" | "GBX" | "GBx" | "gbx" => minor("GBP"),
            "ZAc" | "ZAC" | "zac" => minor("ZAR"),
            "ILA" | "ILa" | "ila" => minor("ILS"),
            _ if code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic()) => {
                Some(Self { currency: code.to_ascii_uppercase(), minor: false })
            }
            _ => None,
        }
    }

    /// An amount in the major unit.
    pub fn to_major(&self, amount: Decimal) -> Decimal {
        if self.minor { amount * Decimal::new(1, 2) } else { amount }
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
            let unit = Unit::parse(code).unwrap();
            assert_eq!((unit.currency.as_str(), unit.to_major(dec!(250))), (currency, value), "{code}");
        }
        assert_eq!(Unit::parse("dollars"), None);
    }

    #[test]
    fn what_is_no_currency() {
        for text in ["", "US", "DOLLAR", "U5D", "US$", "12", "€UR"] {
            assert_eq!(Unit::parse(text), None, "{text}");
        }
        assert_eq!(
            Unit::parse(" eur ").map(|unit| (unit.currency, unit.minor)),
            Some(("EUR".to_owned(), false))
        );
        for code in ["GBx", "gbx", "ZAC", "zac", "ILa", "ila"] {
            assert!(Unit::parse(code).is_some_and(|unit| unit.minor), "{code}");
        }
    }
}
