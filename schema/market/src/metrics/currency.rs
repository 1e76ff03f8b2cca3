//! Currencies and their minor units. Amounts in pence, cents and agorot are converted to the major unit on entry (R4).
//!
//! `GBX` and `GBp` are pence sterling, `ZAc` South African cents, `ILA` Israeli agorot. Amounts in these units are
//! divided by 100. The case of `GBp` matters, since `GBP` is pounds. All other codes are ISO 4217 in upper case. A
//! dividend without a currency has the currency and unit of its security's prices (R39). Source: quoting practice of
//! exchanges and vendors in London, Johannesburg and Tel Aviv.
//!
//! The currency of a security's prices is that of its reference record. Without a reference record, it is the one that a
//! load names for the prices, and then the US dollar. A load that names a unit of the same currency decides the unit of
//! the prices of its source: prices in pounds are not divided by 100, although the reference record says pence.

use rust_decimal::Decimal;

use crate::decimal::{MAX_FRACTION_DIGITS, round};
use crate::event::{Action, Dividend, MINOR_UNIT_PLACES, Security};
use crate::history::History;

/// Currency of a feed's amounts, and the unit of these amounts (major or minor, such as pounds or pence).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    /// ISO 4217 code of the major unit.
    pub code: String,
    /// Minor unit of the amounts (`GBX`, `ZAC`, `ILA`); `None` for amounts in the major unit.
    pub minor: Option<&'static str>,
}

impl Currency {
    /// US dollar, the default currency of a security.
    pub fn dollar() -> Self {
        Self { code: "USD".to_owned(), minor: None }
    }

    /// Currency and unit of the prices of a security with this reference record. For a security without one (a
    /// provisional security), US dollars are assumed.
    pub fn of_prices(security: Option<&Security>) -> Self {
        let Some(security) = security else { return Self::dollar() };
        let unit = security.quote_unit.as_deref().and_then(Self::parse);
        unit.unwrap_or_else(|| Self { code: security.currency.clone(), minor: None })
    }

    /// Currency and unit of the prices of a history's security, as its reference record or else a load names them.
    fn of_history(history: &History) -> Self {
        let named = || named_unit(history, |_| true).and_then(Self::parse);
        match &history.security {
            Some(security) => Self::of_prices(Some(&security.record)),
            None => named().unwrap_or_else(Self::dollar),
        }
    }

    /// Sets the currency on a dividend without a currency, and converts its amounts to the major unit.
    pub fn assign(&self, dividend: &mut Dividend) {
        if dividend.currency.is_empty() {
            dividend.currency = self.code.as_str().into();
            dividend.amount = self.to_major(dividend.amount);
            dividend.sibling_amounts.iter_mut().for_each(|amount| *amount = self.to_major(*amount));
        }
    }

    /// Code of the unit of the amounts: the minor unit, or else the currency code.
    pub fn unit(&self) -> &str {
        self.minor.unwrap_or(&self.code)
    }

    /// Code of the major unit of a unit as in [`Self::unit`].
    fn major_code(unit: &str) -> &str {
        match unit {
            "GBX" => "GBP",
            "ZAC" => "ZAR",
            "ILA" => "ILS",
            code => code,
        }
    }

    /// Parses a currency code; `None` if the text does not consist of three letters.
    pub fn parse(text: &str) -> Option<Self> {
        // The case matters: `GBp` is pence, `GBP` is pounds.
        let (code, minor) = match text {
            "GBX" | "GBx" | "gbx" | "GBp" => ("GBP", Some("GBX")),
            "ZAc" | "ZAC" | "zac" => ("ZAR", Some("ZAC")),
            "ILA" | "ila" | "ILa" => ("ILS", Some("ILA")),
            _ => (text, None),
        };
        let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_code.then(|| Self { code: code.to_ascii_uppercase(), minor })
    }

    /// Converts an amount to the major unit, rounded to `MAX_FRACTION_DIGITS` decimal places.
    pub fn to_major(&self, amount: Decimal) -> Decimal {
        if self.minor.is_none() {
            return amount;
        }
        let mut major = amount;
        // Moving the decimal point is exact; a division could round.
        match major.set_scale(amount.scale() + MINOR_UNIT_PLACES) {
            Ok(()) => round(major, MAX_FRACTION_DIGITS),
            Err(_) => round(amount / Decimal::ONE_HUNDRED, MAX_FRACTION_DIGITS),
        }
    }
}

/// ISO 4217 currency of a history's prices.
pub(crate) fn price_currency(history: &History) -> &str {
    match &history.security {
        Some(security) => &security.record.currency,
        None => named_unit(history, |_| true).map_or("USD", Currency::major_code),
    }
}

/// True if the prices of a source are in a minor unit of the currency of the history's prices.
pub(crate) fn is_minor(history: &History, source: &str) -> bool {
    let currency = price_currency(history);
    let named = named_unit(history, |other| other == source);
    match named.filter(|unit| Currency::major_code(unit) == currency) {
        Some(unit) => unit != currency,
        None => history.security.as_ref().is_some_and(|security| security.record.quote_unit.is_some()),
    }
}

/// Unit that the newest load of the sources that `counts` accepts names for the prices.
fn named_unit(history: &History, counts: impl Fn(&str) -> bool) -> Option<&str> {
    let named = history.evidence.iter().filter(|row| row.action == Action::Put && counts(&row.source));
    let newest = named.filter(|row| row.record.price_unit.is_some()).max_by_key(|row| row.version(0));
    newest.and_then(|row| row.record.price_unit.as_deref())
}

/// Gives each dividend without a currency the currency of the security's prices (R39). If the prices are in a minor
/// unit, the amounts of these dividends are converted to the major unit.
pub fn assign_currency(history: &mut History) {
    let currency = Currency::of_history(history);
    history.dividends.iter_mut().for_each(|dividend| currency.assign(&mut dividend.record));
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
