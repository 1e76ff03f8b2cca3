//! Countries: ISO 3166-1 codes and English names, with look-up by code or by any common name.

use super::table::{plain, reference_table};

reference_table! {
    /// Country or territory of ISO 3166-1. The table is sorted by name.
    pub struct Country in "country.txt" {
        /// Two-letter ISO 3166-1 code, for example `US`. Responses contain this code.
        code,
        /// Three-letter ISO 3166-1 code.
        alpha3,
        /// English name.
        name,
    }
}

impl Country {
    /// Codes and name of the country.
    pub fn codes_and_names(&self) -> impl Iterator<Item = &'static str> {
        [self.code, self.alpha3, self.name].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_codes() {
        for (name, code) in [
            ("USA", Some("US")),
            ("us", Some("US")),
            ("United States", Some("US")),
            ("Korea (South)", Some("KR")),
            ("Virgin Islands, British", Some("VG")),
            ("Türkiye", Some("TR")),
            ("California", None),
            ("", None),
        ] {
            assert_eq!(Country::find(name).map(|country| country.code), code, "{name}");
        }
        assert_eq!(ALL.len(), 249);
    }

    #[test]
    fn every_country_is_found_by_each_of_its_names() {
        for country in Country::all() {
            for name in country.codes_and_names().chain(country.aliases.iter().copied()) {
                assert_eq!(Country::find(name), Some(country), "{name}");
            }
        }
        assert!(Country::all().len() > 200);
    }
}
