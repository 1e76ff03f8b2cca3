//! Address of a security: a symbol or an identifier (ISIN, FIGI, CUSIP), with an optional market (MIC).
//!
//! Check digits follow ISO 6166 (ISIN), the OMG's FIGI standard and ANSI X9.6 (CUSIP).

use std::fmt;
use std::str::FromStr;

use crate::event::Security;
use crate::symbol::{Symbol, SymbolError};
use crate::text_enum;

text_enum! {
    /// Scheme of an identifier. Its word is the prefix of the identifier in an address: `isin:US1912161007`.
    pub enum IdentifierScheme { Isin = "isin", Figi = "figi", Cusip = "cusip" }
}

/// Characters of an ISIN and of a FIGI.
const LENGTH: usize = 12;
/// Characters of a CUSIP.
const CUSIP_LENGTH: usize = 9;

impl IdentifierScheme {
    /// Scheme with a prefix, in upper or lower case.
    fn of_prefix(prefix: &str) -> Option<Self> {
        prefix.trim().to_ascii_lowercase().parse().ok()
    }

    /// Name in an error message.
    fn name(self) -> String {
        self.as_str().to_ascii_uppercase()
    }

    /// Example in an error message.
    fn example(self) -> &'static str {
        match self {
            Self::Isin => "isin:US1912161007",
            Self::Figi => "figi:BBG000BMX289",
            Self::Cusip => "cusip:191216100",
        }
    }

    /// Key of an identifier: prefix and upper-case identifier.
    ///
    /// # Errors
    /// The identifier has another form, or a wrong check digit.
    fn key(self, identifier: &str) -> Result<String, AddressError> {
        let identifier = identifier.trim().to_ascii_uppercase();
        let digits = digits_of(&identifier).filter(|_| self.has_form(identifier.as_bytes()));
        let digits = digits.ok_or(AddressError::Form { scheme: self, example: self.example() })?;
        let is_right = match self {
            Self::Isin => is_checked_by_digit(&digits),
            Self::Figi | Self::Cusip => is_checked_by_character(&digits),
        };
        if is_right { Ok(format!("{self}:{identifier}")) } else { Err(AddressError::CheckDigit(self)) }
    }

    fn has_form(self, text: &[u8]) -> bool {
        let is_letter = |place: usize| text.get(place).is_some_and(u8::is_ascii_uppercase);
        let is_checked = text.last().is_some_and(u8::is_ascii_digit);
        is_checked
            && match self {
                Self::Isin => text.len() == LENGTH && is_letter(0) && is_letter(1),
                Self::Figi => {
                    text.len() == LENGTH && is_letter(0) && is_letter(1) && text.get(2) == Some(&b'G')
                }
                Self::Cusip => text.len() == CUSIP_LENGTH,
            }
    }
}

/// Values of digits and letters (`A` is 10); `None` if the text has another character.
fn digits_of(identifier: &str) -> Option<Vec<u32>> {
    identifier.chars().map(|character| character.to_digit(36)).collect()
}

/// Luhn check of an ISIN: letters become two digits, and every second digit from the right is doubled.
fn is_checked_by_digit(values: &[u32]) -> bool {
    let digits = values.iter().rev().flat_map(|value| match value {
        0..10 => vec![*value],
        _ => vec![value % 10, value / 10],
    });
    let sum: u32 =
        digits.zip([1, 2].into_iter().cycle()).map(|(digit, factor)| digit_sum(digit * factor)).sum();
    sum.is_multiple_of(10)
}

/// Check of a FIGI and a CUSIP: every second value from the left is doubled.
fn is_checked_by_character(values: &[u32]) -> bool {
    let Some((check, values)) = values.split_last() else { return false };
    let sum: u32 =
        values.iter().zip([1, 2].into_iter().cycle()).map(|(value, factor)| digit_sum(value * factor)).sum();
    (sum + check).is_multiple_of(10)
}

/// Sum of the decimal digits of a number below 100.
fn digit_sum(number: u32) -> u32 {
    number / 10 + number % 10
}

/// Error for a text that is not an address. Its text continues a sentence that begins with the name of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is neither a symbol nor an identifier.
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    /// The identifier has not the form of its scheme.
    #[error("has a malformed {}; write it as {example}", .scheme.name())]
    Form {
        /// Scheme of the prefix.
        scheme: IdentifierScheme,
        /// Right identifier.
        example: &'static str,
    },
    /// The check digit of the identifier is wrong.
    #[error("has a wrong {} check digit", .0.name())]
    CheckDigit(IdentifierScheme),
    /// The market is not a MIC.
    #[error("has a market that is not a MIC of 4 letters or digits, such as KO@XNYS")]
    Market,
}

/// Address of a security, as the keys to look up, best first. A key is a symbol (`KO`) or an identifier
/// (`isin:US1912161007`), with its market (`KO@XNYS`) if the address has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityAddress(Vec<String>);

impl SecurityAddress {
    /// Parses a symbol in the spelling of any vendor, an identifier with its prefix, or an ISIN without prefix.
    ///
    /// # Errors
    /// The text is not a symbol, or its identifier or market is wrong.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (security, market) = match text.rsplit_once('@') {
            Some((security, market)) => (security, Some(mic(market).ok_or(AddressError::Market)?)),
            None => (text, None),
        };
        let mut keys = match security.split_once(':') {
            Some((prefix, identifier)) => {
                let scheme = IdentifierScheme::of_prefix(prefix).ok_or(SymbolError)?;
                vec![scheme.key(identifier)?]
            }
            None => {
                let symbol = Symbol::parse(security)?;
                let mut keys: Vec<String> = symbol.spellings().map(|symbol| symbol.to_string()).collect();
                match IdentifierScheme::Isin.key(security) {
                    Ok(isin) => keys.push(isin),
                    Err(AddressError::Form { .. }) => {}
                    Err(error) => return Err(error),
                }
                keys
            }
        };
        if let Some(market) = market {
            keys.iter_mut().for_each(|key| *key = at_market(key, &market));
        }
        Ok(Self(keys))
    }

    /// Keys to look up, best first.
    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// Symbol of an address that is neither an identifier nor has a market.
    pub fn as_symbol(&self) -> Option<Symbol> {
        let symbol = self.0.first().filter(|_| self.0.iter().all(|key| is_plain_symbol(key)))?;
        Some(Symbol::from_stored(symbol))
    }

    /// Keys to look up, best first.
    pub fn into_keys(self) -> Vec<String> {
        self.0
    }
}

impl FromStr for SecurityAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl fmt::Display for SecurityAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.first().map_or("", String::as_str))
    }
}

/// Splits `ADDRESS:REST` at the first colon that is not part of a prefix. The rest is `None` without such a colon.
pub fn split_address(text: &str) -> (&str, Option<&str>) {
    let start = text.split_once(':').map_or(0, |(prefix, _)| {
        if IdentifierScheme::of_prefix(prefix).is_some() { prefix.len() + 1 } else { 0 }
    });
    match text[start..].find(':') {
        Some(place) => (&text[..start + place], Some(&text[start + place + 1..])),
        None => (text, None),
    }
}

/// True if a key of an address is a symbol without a market.
pub fn is_plain_symbol(key: &str) -> bool {
    !key.contains([':', '@'])
}

/// Keys of the identifiers of a security, without a market. Identifiers with a wrong check digit have no key. The CUSIP
/// of an American or Canadian security is part of its ISIN.
pub(super) fn identifier_keys(security: &Security) -> Vec<String> {
    let key = |scheme: IdentifierScheme, identifier: &Option<String>| {
        identifier.as_deref().and_then(|identifier| scheme.key(identifier).ok())
    };
    let isin = key(IdentifierScheme::Isin, &security.isin);
    let cusip = key(IdentifierScheme::Cusip, &security.cusip).or_else(|| {
        let national = isin.as_deref()?.strip_prefix("isin:")?;
        let national = national.strip_prefix("US").or_else(|| national.strip_prefix("CA"))?;
        IdentifierScheme::Cusip.key(national.get(..CUSIP_LENGTH)?).ok()
    });
    [isin, key(IdentifierScheme::Figi, &security.figi), cusip].into_iter().flatten().collect()
}

/// Key with a market.
pub(super) fn at_market(key: &str, market: &str) -> String {
    format!("{key}@{market}")
}

/// Market identifier code in upper case; `None` if the text is not a MIC (ISO 10383).
pub(super) fn mic(text: &str) -> Option<String> {
    let text = text.trim();
    let is_mic = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_mic.then(|| text.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[&str], AddressError>) {
        let found = SecurityAddress::parse(text).map(SecurityAddress::into_keys);
        assert_eq!(found, expected.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()), "{text}");
    }

    #[test]
    fn an_address_is_a_symbol_or_an_identifier_perhaps_with_a_market() {
        check("ko", Ok(&["KO"]));
        check("BAC-L", Ok(&["BAC.L", "BAC.PRL"]));
        check("KO@xnys", Ok(&["KO@XNYS"]));
        check("bac-l@XNYS", Ok(&["BAC.L@XNYS", "BAC.PRL@XNYS"]));
        check("ISIN:us1912161007", Ok(&["isin:US1912161007"]));
        check(" US1912161007 ", Ok(&["US1912161007", "isin:US1912161007"]));
        check("IE00B3XXRP09@XLON", Ok(&["IE00B3XXRP09@XLON", "isin:IE00B3XXRP09@XLON"]));
        check("isin:GB00BP6MXD84@XLON", Ok(&["isin:GB00BP6MXD84@XLON"]));
        for figi in ["BBG000BMX289", "BBG000B9XRY4", "BBG000BLNQ16", "BBG001S5N8V8"] {
            check(&format!("figi:{figi}"), Ok(&[&format!("figi:{figi}")]));
        }
        check("cusip:191216100", Ok(&["cusip:191216100"]));
        check("CUSIP:037833100@XNAS", Ok(&["cusip:037833100@XNAS"]));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let form = |scheme: IdentifierScheme| AddressError::Form { scheme, example: scheme.example() };
        check("isin:US1912161008", Err(AddressError::CheckDigit(IdentifierScheme::Isin)));
        check("US1912161008", Err(AddressError::CheckDigit(IdentifierScheme::Isin)));
        check("figi:BBG000BMX288", Err(AddressError::CheckDigit(IdentifierScheme::Figi)));
        check("cusip:191216101", Err(AddressError::CheckDigit(IdentifierScheme::Cusip)));
        check("isin:KO", Err(form(IdentifierScheme::Isin)));
        check("isin:", Err(form(IdentifierScheme::Isin)));
        check("figi:US1912161007", Err(form(IdentifierScheme::Figi)));
        check("cusip:19121610Ä", Err(form(IdentifierScheme::Cusip)));
        check("KO@NYSE1", Err(AddressError::Market));
        check("KO@", Err(AddressError::Market));
        for text in ["", ":", "@XNYS", "sedol:B0YBKJ7", "isin:US1912161007:1", "KO:120"] {
            assert!(SecurityAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_changed_digit_of_an_isin_is_found() {
        let isin = "GB00BP6MXD84";
        for place in 2..isin.len() {
            for digit in '0'..='9' {
                let mut text: Vec<char> = isin.chars().collect();
                text[place] = digit;
                let text = String::from_iter(text);
                let is_checked = SecurityAddress::parse(&format!("isin:{text}")).is_ok();
                // A letter and a digit may have the same share in the sum.
                let is_letter = isin.as_bytes()[place].is_ascii_alphabetic();
                assert!(text == isin || is_letter || !is_checked, "{text}");
            }
        }
    }

    #[test]
    fn an_address_ends_before_the_colon_of_the_rest() {
        for (text, expected) in [
            ("KO:120:5", ("KO", Some("120:5"))),
            ("KO", ("KO", None)),
            ("isin:US1912161007:120", ("isin:US1912161007", Some("120"))),
            ("Isin:US1912161007", ("Isin:US1912161007", None)),
            ("VUSA@XLON:3", ("VUSA@XLON", Some("3"))),
        ] {
            assert_eq!(split_address(text), expected, "{text}");
        }
    }
}
