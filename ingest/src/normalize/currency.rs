//! Currencies and their minor units (R4).

use market::event::MINOR_UNIT_PLACES;
use market::value::{MAX_FRACTION_DIGITS, round};
use rust_decimal::Decimal;

/// A currency, in its major unit; `minor` names the unit the amounts beside it are in, 100 to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    pub code: String,
    pub minor: Option<&'static str>,
}

impl Currency {
    /// The dollar of feeds that name no currency.
    pub fn dollar() -> Self {
        Self { code: "USD".to_owned(), minor: None }
    }

    /// Brings an amount to the major unit.
    pub fn major(&self, amount: Decimal) -> Decimal {
        if self.minor.is_none() {
            return amount;
        }
        let mut amount = amount;
        // Moving the point is exact; the digits past the tenth place are rounded as on entry.
        match amount.set_scale(amount.scale() + MINOR_UNIT_PLACES) {
            Ok(()) => round(amount, MAX_FRACTION_DIGITS),
            Err(_) => amount / Decimal::ONE_HUNDRED,
        }
    }
}

/// Reads a currency code; minor units (R4) are told by their spelling, where `GBp` and `GBP` differ.
pub(crate) fn parse_currency(text: &str) -> Option<Currency> {
    let (code, minor) = match text {
        "GBX" | "GBx" | "gbx" | "GBp" => ("GBP", Some("GBX")),
        "ZAc" | "ZAC" | "zac" => ("ZAR", Some("ZAC")),
        "ILA" | "ila" | "ILa" => ("ILS", Some("ILA")),
        _ => (text, None),
    };
    let valid = code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic());
    valid.then(|| Currency { code: code.to_ascii_uppercase(), minor })
}
