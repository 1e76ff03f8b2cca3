//! The names filters choose by: what a client's word means, and what is nearest to one that means nothing.
//!
//! Names are compared in plain letters, so a name, its slug and any case of both are one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use market::reference::{Country, Exchange, plain};
use market::text_enum;

use crate::parameters::trigram::{likeness, trigrams};

/// Commas that a single name may hold, as in `Oil, Gas & Consumable Fuels`.
const COMMAS: usize = 4;
/// Names that are suggested in place of an unknown one.
const SUGGESTED: usize = 20;

text_enum! {
    /// What a filter's names are names of.
    pub enum Field {
        Sector = "sector", Industry = "industry", Exchange = "exchange", Country = "country", Index = "index",
        Issuer = "issuer", AssetClass = "asset_class", Category = "category", Strategy = "strategy",
    }
}

/// The names of one version of the data.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary(BTreeMap<Field, Words>);

/// A word that names nothing, and what is near it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    pub(crate) word: String,
    /// Known names, nearest first.
    pub(crate) nearest: Vec<String>,
}

impl Vocabulary {
    /// True if nothing is loaded yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a name as it is served.
    pub(crate) fn insert(&mut self, field: Field, name: String) {
        self.0.entry(field).or_default().insert(name);
    }

    /// The names of a field together with others.
    pub(crate) fn with(&self, field: Field, others: Words) -> Words {
        let known = self.0.get(&field).into_iter().flat_map(Words::names);
        known.chain(others.names()).cloned().collect()
    }

    /// The served names that a comma-separated list means.
    pub(crate) fn meaning(&self, field: Field, text: &str) -> Result<Vec<String>, Unknown> {
        static NONE: Words = Words(BTreeMap::new());
        self.0.get(&field).unwrap_or(&NONE).meaning(standard(field), text)
    }
}

/// Served names by their plain letters.
#[derive(Debug, Default)]
pub(crate) struct Words(BTreeMap<String, Vec<String>>);

impl FromIterator<String> for Words {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let mut words = Self::default();
        names.into_iter().for_each(|name| words.insert(name));
        words
    }
}

impl Words {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.0.values().flatten()
    }

    fn insert(&mut self, name: String) {
        let names = self.0.entry(plain(&name)).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// The served names that a comma-separated list means, with those of a standard.
    pub(crate) fn meaning(&self, standard: Standard, text: &str) -> Result<Vec<String>, Unknown> {
        let parts: Vec<&str> = text.split(',').collect();
        let (mut meant, mut rest) = (Vec::new(), parts.as_slice());
        while let Some(first) = rest.first() {
            // The longest name first, since names have commas.
            let longest = rest.len().min(COMMAS + 1);
            let named = |count: usize| {
                // Nothing after a comma is no part of a name.
                let text = Some(rest[..count].join(",")).filter(|text| !text.trim_end().ends_with(','))?;
                Some((self.one(standard, &text)?, count))
            };
            let Some((names, count)) = (1..=longest).rev().find_map(named) else {
                return Err(Unknown {
                    word: first.trim().to_owned(),
                    nearest: self.nearest(standard, first),
                });
            };
            meant.extend(names);
            rest = &rest[count..];
        }
        Ok(meant)
    }

    fn one(&self, standard: Standard, text: &str) -> Option<Vec<String>> {
        let code = (standard.find)(text).map(|code| vec![code.to_owned()]);
        code.or_else(|| self.0.get(&plain(text)).cloned())
    }

    fn nearest(&self, standard: Standard, text: &str) -> Vec<String> {
        let wanted = trigrams(&text.to_lowercase());
        let served = self.names().map(|name| (name.as_str(), name.as_str()));
        let spelled = served.chain((standard.spellings)());
        let mut near: Vec<_> = spelled.map(|(name, spelling)| (nearness(&wanted, spelling), name)).collect();
        near.sort_unstable();
        let mut names: Vec<String> = Vec::new();
        for (_, name) in near {
            if names.len() < SUGGESTED && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Words that are known although nothing is loaded that has them.
#[derive(Clone, Copy)]
pub(crate) struct Standard {
    /// The served code of any of its names.
    find: fn(&str) -> Option<&'static str>,
    /// Served codes with each of their names.
    spellings: fn() -> Vec<(&'static str, &'static str)>,
}

impl Standard {
    pub(crate) const NONE: Self = Self { find: |_| None, spellings: Vec::new };
    const EXCHANGES: Self = Self {
        find: |text| Exchange::find(text).map(|exchange| exchange.mic),
        spellings: || {
            let of = |exchange: &'static Exchange| exchange.names().map(move |name| (exchange.mic, name));
            Exchange::all().iter().flat_map(of).collect()
        },
    };
    const COUNTRIES: Self = Self {
        find: |text| Country::find(text).map(|country| country.code),
        spellings: || {
            let of = |country: &'static Country| country.names().map(move |name| (country.code, name));
            Country::all().iter().flat_map(of).collect()
        },
    };
}

fn standard(field: Field) -> Standard {
    match field {
        Field::Exchange => Standard::EXCHANGES,
        Field::Country => Standard::COUNTRIES,
        _ => Standard::NONE,
    }
}

/// Words in the order of their likeness to what a client wrote.
pub(crate) fn nearest_first(mut words: Vec<String>, text: &str) -> Vec<String> {
    let wanted = trigrams(&text.to_lowercase());
    words.sort_unstable_by(|a, b| nearness(&wanted, a).cmp(&nearness(&wanted, b)));
    words
}

/// The order of names by how much of each is in the other; of those equally like, the shorter first, then by the alphabet.
fn nearness<'a>(wanted: &[u32], name: &'a str) -> (Reverse<u32>, usize, &'a str) {
    let parts = trigrams(&name.to_lowercase());
    (Reverse(likeness(wanted, &parts) + likeness(&parts, wanted)), name.chars().count(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        for (field, name) in [
            (Field::Sector, "Energy"),
            (Field::Sector, "Consumer Staples"),
            (Field::Sector, "Information Technology"),
            (Field::Industry, "Banks"),
            (Field::Industry, "Oil, Gas & Consumable Fuels"),
            (Field::Exchange, "XNYS"),
            (Field::Index, "S&P 500"),
        ] {
            vocabulary.insert(field, name.to_owned());
        }
        vocabulary
    }

    #[track_caller]
    fn check(field: Field, text: &str, expected: &[&str]) {
        let meant = vocabulary().meaning(field, text).expect("known");
        assert_eq!(meant, expected, "{text}");
    }

    #[test]
    fn names_slugs_codes_and_lists_are_understood() {
        check(Field::Sector, "consumer-staples", &["Consumer Staples"]);
        check(Field::Sector, "ENERGY, Consumer Staples", &["Energy", "Consumer Staples"]);
        check(Field::Industry, "Oil, Gas & Consumable Fuels", &["Oil, Gas & Consumable Fuels"]);
        check(
            Field::Industry,
            "banks,oil-gas-consumable-fuels,Oil, Gas & Consumable Fuels",
            &["Banks", "Oil, Gas & Consumable Fuels", "Oil, Gas & Consumable Fuels"],
        );
        check(Field::Exchange, "NYSE,nasdaq", &["XNYS", "XNAS"]);
        check(Field::Country, "USA,de,South Korea", &["US", "DE", "KR"]);
        check(Field::Index, "s&p-500", &["S&P 500"]);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let unknown = vocabulary().meaning(Field::Sector, "Energy,Technology").expect_err("unknown");
        assert_eq!(
            (unknown.word.as_str(), unknown.nearest[0].as_str()),
            ("Technology", "Information Technology")
        );
        assert_eq!(unknown.nearest.len(), 3);
        let unknown = vocabulary().meaning(Field::Country, "Germony").expect_err("unknown");
        assert!(
            unknown.nearest.len() <= SUGGESTED && unknown.nearest[..3].contains(&"DE".to_owned()),
            "{unknown:?}"
        );
        assert_eq!(vocabulary().meaning(Field::Sector, "Energy,").expect_err("empty").word, "");
        // Others are called like it as well: NYSE Arca, and NYSE Euronext Paris.
        let unknown = vocabulary().meaning(Field::Exchange, "NYSEE").expect_err("unknown");
        assert_eq!(unknown.nearest[0], "XNYS");
        assert_eq!(
            nearest_first(["bb", "c", "aa", "a"].map(str::to_owned).to_vec(), "x"),
            ["a", "c", "aa", "bb"]
        );
    }
}
