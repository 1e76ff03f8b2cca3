//! Exchanges: ISO 10383 market identifier codes and names, with look-up by code or by any common name.

use super::table::{plain, reference_table};

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
