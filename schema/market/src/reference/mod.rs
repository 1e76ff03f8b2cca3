//! Reference data: the standard code or name of each sector, exchange and country.
//!
//! A look-up accepts any of the names that vendors use. In feed rows, an unknown name stays as the vendor wrote it.
//!
//! The tables are text files with one row per line and fields separated by semicolons.

use std::sync::LazyLock;

use crate::metrics::sector::slug;

/// Name in lower case without blanks and punctuation: `Cboe BZX (BATS)` is `cboebzxbats`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Declares the row struct of a table. After the declared fields, a line has a field with other common names, separated
/// by blanks. Missing fields are empty.
macro_rules! reference_table {
    ($(#[$meta:meta])* pub struct $name:ident in $file:literal { $($(#[$field_meta:meta])* $field:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: &'static str,)+
            /// Other common names, in lower case without blanks and punctuation.
            aliases: Vec<&'static str>,
        }

        impl $name {
            /// All rows, in the order of the table.
            pub fn all() -> &'static [Self] {
                static ALL: LazyLock<Vec<$name>> = LazyLock::new(|| {
                    let row = |line: &'static str| {
                        let mut fields = line.split(';');
                        let mut next = || fields.next().unwrap_or_default();
                        let row = $name { $($field: next(),)+ aliases: next().split_whitespace().collect() };
                        debug_assert!(fields.next().is_none(), "too many fields: {line}");
                        row
                    };
                    include_str!($file).lines().filter(|line| !line.starts_with('#')).map(row).collect()
                });
                &ALL
            }

            /// Finds the row with a code, name or other common name that equals `name`; `None` without such a row.
            /// Case, blanks and punctuation are ignored in the comparison.
            pub fn find(name: &str) -> Option<&'static Self> {
                let name = plain(name);
                Self::all().iter().find(|row| {
                    [$(row.$field),+].iter().any(|other| plain(other) == name)
                        || row.aliases.contains(&name.as_str())
                })
            }
        }
    };
}
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

reference_table! {
    /// Exchange with its market identifier code and names. The table lists the exchanges of the United States first.
    pub struct Exchange in "exchange.txt" {
        /// ISO 10383 market identifier code, for example `XNYS`. Responses contain this code.
        mic,
        /// Name of the exchange.
        name,
    }
}

impl Exchange {
    /// Market identifier code, name and other names of the exchange. The other names are in lower case without blanks
    /// and punctuation.
    pub fn codes_and_names(&self) -> impl Iterator<Item = &'static str> {
        [self.mic, self.name].into_iter().chain(self.aliases.iter().copied())
    }
}

reference_table! {
    /// Sector of the Global Industry Classification Standard. The table follows the order of the standard.
    pub struct Sector in "sector.txt" {
        /// Name of the sector, for example `Health Care`. Responses contain this name.
        name,
    }
}

impl Sector {
    /// Slug of the name for URL paths, for example `health-care`.
    pub fn slug(&self) -> String {
        slug(self.name)
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
        assert_eq!(Country::all().len(), 249);
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

#[cfg(test)]
mod exchange_tests {
    use super::*;

    #[test]
    fn names_are_codes() {
        for (name, mic) in [
            ("XNYS", Some("XNYS")),
            ("NYSE", Some("XNYS")),
            ("New York Stock Exchange Inc.", Some("XNYS")),
            ("NASDAQ", Some("XNAS")),
            ("NYSE ARCA", Some("ARCX")),
            ("NYSE MKT", Some("XASE")),
            ("lse", Some("XLON")),
            ("US", None),
            ("", None),
        ] {
            let found = Exchange::find(name);
            assert_eq!(found.map(|exchange| exchange.mic), mic, "{name}");
            assert!(found.is_none_or(|exchange| Exchange::all().contains(exchange)), "{name}");
        }
    }

    #[test]
    fn a_name_means_one_exchange() {
        for exchange in Exchange::all() {
            for name in exchange.codes_and_names() {
                assert_eq!(Exchange::find(name), Some(exchange), "{name}");
            }
        }
    }
}

#[cfg(test)]
mod sector_tests {
    use super::*;

    #[test]
    fn vendors_names_are_one() {
        for (name, sector) in [
            ("TECHNOLOGY", Some("Information Technology")),
            ("Financial Services", Some("Financials")),
            ("Consumer Cyclical", Some("Consumer Discretionary")),
            ("Healthcare", Some("Health Care")),
            ("Basic Materials", Some("Materials")),
            ("real-estate", Some("Real Estate")),
            ("Telecommunications Services", None),
            ("Telecommunication Services", Some("Communication Services")),
            ("Building Products", None),
            ("", None),
        ] {
            assert_eq!(Sector::find(name).map(|sector| sector.name), sector, "{name}");
        }
        assert_eq!(Sector::all().len(), 11);
        assert!(Sector::all().iter().all(|sector| Sector::find(&sector.slug()) == Some(sector)));
    }
}
