//! Countries: ISO 3166-1 codes and English names, with look-up by code or by any common name.

use std::sync::LazyLock;

use super::spelling::plain;
use super::table::{further_names, rows};

/// Country or territory of ISO 3166-1.
#[derive(Debug, PartialEq, Eq)]
pub struct Country {
    /// Two-letter ISO 3166-1 code, for example `US`. Responses contain this code.
    pub code: &'static str,
    /// Three-letter ISO 3166-1 code.
    pub alpha3: &'static str,
    /// English name.
    pub name: &'static str,
    /// Other common names, in lower case without blanks and punctuation.
    aliases: Vec<&'static str>,
}

/// Countries of ISO 3166-1, sorted by name.
static ALL: LazyLock<Vec<Country>> = LazyLock::new(|| {
    let country = |[code, alpha3, name, aliases]: [&'static str; 4]| Country {
        code,
        alpha3,
        name,
        aliases: further_names(aliases),
    };
    rows(include_str!("country.txt")).map(country).collect()
});

impl Country {
    /// All countries of ISO 3166-1.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Country of a code or name; `None` if unknown.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = plain(name);
        ALL.iter().find(|country| {
            country.codes_and_names().any(|other| plain(other) == name)
                || country.aliases.contains(&name.as_str())
        })
    }

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
