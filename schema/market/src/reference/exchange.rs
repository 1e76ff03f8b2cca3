//! Exchanges: ISO 10383 market identifier codes and names, with look-up by code or by any common name.

use std::sync::LazyLock;

use super::spelling::plain;
use super::table::{further_names, rows};

/// Exchange with its market identifier code and names.
#[derive(Debug, PartialEq, Eq)]
pub struct Exchange {
    /// ISO 10383 market identifier code, for example `XNYS`. Responses contain this code.
    pub mic: &'static str,
    /// Name of the exchange.
    pub name: &'static str,
    /// Other common names, in lower case without blanks and punctuation.
    aliases: Vec<&'static str>,
}

/// Known exchanges, those of the United States first.
static ALL: LazyLock<Vec<Exchange>> = LazyLock::new(|| {
    let exchange =
        |[mic, name, aliases]: [&'static str; 3]| Exchange { mic, name, aliases: further_names(aliases) };
    rows(include_str!("exchange.txt")).map(exchange).collect()
});

impl Exchange {
    /// All known exchanges.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Exchange of a code or name; `None` if unknown.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = plain(name);
        ALL.iter().find(|exchange| {
            plain(exchange.mic) == name
                || plain(exchange.name) == name
                || exchange.aliases.contains(&name.as_str())
        })
    }

    /// Market identifier code, name and other common names of the exchange.
    pub fn codes_and_names(&self) -> impl Iterator<Item = &'static str> {
        [self.mic, self.name].into_iter().chain(self.aliases.iter().copied())
    }
}

#[cfg(test)]
mod tests {
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
