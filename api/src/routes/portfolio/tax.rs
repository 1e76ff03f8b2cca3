//! Withholding tax at the rates of the request, by the security's country of domicile.

use std::collections::BTreeMap;

use market::decimal::{parse_decimal, round};
use market::reference::Country;
use rust_decimal::Decimal;

use crate::parameters::ParameterReader;

/// Maximum length of the tax rates, in characters.
const MAX_LENGTH: usize = 1_024;
/// Key of the rate for all other countries.
const OTHERS: &str = "*";
/// Currencies without a minor unit, and currencies whose minor unit is a thousandth (ISO 4217).
const NO_PLACES: [&str; 16] = [
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF",
    "XPF",
];
const THREE_PLACES: [&str; 7] = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"];

/// Tax rates by country code, in percent.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaxRates(BTreeMap<String, Decimal>);

impl ParameterReader<'_> {
    /// Reads `tax`: comma-separated `COUNTRY:PERCENT`.
    pub(super) fn read_tax_rates(&mut self) -> Option<TaxRates> {
        let text = self.read_text("tax", MAX_LENGTH)?;
        let rates = TaxRates::parse(&text);
        rates.map_err(|error| self.add_error("tax", error, None)).ok()
    }
}

impl TaxRates {
    fn parse(text: &str) -> Result<Self, String> {
        let mut rates = BTreeMap::new();
        for item in text.split(',').map(str::trim) {
            let error = || format!("has an item {item:?} that is not like US:15 or *:0");
            let (name, percent) = item.split_once(':').ok_or_else(error)?;
            let country = Country::find(name).map(|country| country.code).filter(|_| name.len() == 2);
            let key = if name == OTHERS { OTHERS } else { country.ok_or_else(error)? };
            let percent = parse_decimal(percent).map_err(|_| error())?.value;
            if !(Decimal::ZERO..=Decimal::ONE_HUNDRED).contains(&percent) {
                return Err(format!("has an item {item:?} that is not from 0 to 100 percent"));
            }
            if rates.insert(key.to_owned(), percent).is_some() {
                return Err(format!("has more than one rate for {key}"));
            }
        }
        Ok(Self(rates))
    }

    /// Tax rate of a country, in percent; `None` if the request has no rate for it.
    pub(super) fn rate(&self, country: Option<&str>) -> Option<Decimal> {
        country.and_then(|country| self.0.get(country)).or_else(|| self.0.get(OTHERS)).copied()
    }
}

/// Decimal places of the minor unit of a currency.
pub(super) fn minor_places(currency: &str) -> u32 {
    match currency {
        currency if NO_PLACES.contains(&currency) => 0,
        currency if THREE_PLACES.contains(&currency) => 3,
        _ => 2,
    }
}

/// Tax on an amount, rounded half away from zero to the minor unit of the currency.
pub(super) fn tax_on(gross: Decimal, percent: Decimal, currency: &str) -> Decimal {
    round(gross * percent / Decimal::ONE_HUNDRED, minor_places(currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_has_its_own_rate_or_that_of_all_others() {
        let rates = TaxRates::parse("US:15, ch:35,*:0.5").expect("rates");
        for (country, rate) in
            [(Some("US"), "15"), (Some("CH"), "35"), (Some("Nowhere"), "0.5"), (None, "0.5")]
        {
            assert_eq!(rates.rate(country), rate.parse().ok(), "{country:?}");
        }
        assert_eq!(TaxRates::parse("US:15").expect("rates").rate(None), None);
        for text in ["US", "US:", "US:x", "US:101", "US:-1", "USA:1", "XX:1", "US:1,US:2", ",US:1", "US:1:2"]
        {
            assert!(TaxRates::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tax_is_rounded_half_away_from_zero_to_the_minor_unit() {
        for (gross, currency, tax) in [
            ("0.1", "USD", "0.02"),
            ("-0.1", "USD", "-0.02"),
            ("0.09", "USD", "0.01"),
            ("10", "JPY", "2"),
            ("9", "JPY", "1"),
            ("0.01", "KWD", "0.002"),
        ] {
            let number = |text: &str| text.parse::<Decimal>().expect("a number");
            assert_eq!(tax_on(number(gross), number("15"), currency), number(tax), "{gross} {currency}");
        }
    }
}
