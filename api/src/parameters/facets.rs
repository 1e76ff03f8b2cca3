//! Facet index: the names that each filter accepts, as they appear in responses (served names). Input may differ in
//! case and punctuation. Unknown names are compared with the known names by their trigrams.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use market::reference::{Country, Exchange, plain};
use market::text_enum;

/// Maximum number of commas in one name. `Oil, Gas & Consumable Fuels` has one.
const COMMAS: usize = 4;
/// Maximum number of suggestions for an unknown name.
const SUGGESTED: usize = 20;

text_enum! {
    /// Filter that accepts names.
    pub enum FilterField {
        Sector = "sector", Industry = "industry", Exchange = "exchange", Country = "country", Index = "index",
        Issuer = "issuer", AssetClass = "asset_class", Category = "category", Strategy = "strategy",
    }
}

/// Names that each filter accepts, as they appear in responses of one data version.
#[derive(Debug, Default)]
pub(crate) struct FacetIndex(BTreeMap<FilterField, FacetNames>);

/// Error for an unknown filter value, with similar known names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownFacet {
    pub(crate) word: String,
    /// Known names, most similar first.
    pub(crate) nearest: Vec<String>,
}

impl FacetIndex {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn insert(&mut self, field: FilterField, name: String) {
        self.0.entry(field).or_default().insert(name);
    }

    /// Served names of a filter, together with the names in `others`.
    pub(crate) fn names_with(&self, field: FilterField, others: FacetNames) -> FacetNames {
        let known = self.0.get(&field).into_iter().flat_map(FacetNames::names);
        known.chain(others.names()).cloned().collect()
    }

    /// Finds the served names for a comma-separated list.
    pub(crate) fn resolve(&self, field: FilterField, text: &str) -> Result<Vec<String>, UnknownFacet> {
        static NONE: FacetNames = FacetNames(BTreeMap::new());
        self.0.get(&field).unwrap_or(&NONE).resolve(Some(field), text)
    }
}

/// Names as they appear in responses, by their form without case and punctuation.
#[derive(Debug, Default)]
pub(crate) struct FacetNames(BTreeMap<String, Vec<String>>);

impl FromIterator<String> for FacetNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let mut words = Self::default();
        names.into_iter().for_each(|name| words.insert(name));
        words
    }
}

impl FacetNames {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.0.values().flatten()
    }

    fn insert(&mut self, name: String) {
        let names = self.0.entry(plain(&name)).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// Finds the served names for a comma-separated list. If `field` is the exchange or the country, standard codes and
    /// names are accepted too.
    pub(crate) fn resolve(
        &self,
        field: Option<FilterField>,
        text: &str,
    ) -> Result<Vec<String>, UnknownFacet> {
        let resolved = self.resolve_each(field, text).into_iter().map(|names| {
            names.map_err(|unknown| UnknownFacet {
                word: unknown.trim().to_owned(),
                nearest: self.suggest(field, unknown),
            })
        });
        Ok(resolved.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Finds the served names for a comma-separated list. Unknown names are skipped.
    pub(crate) fn resolve_known(&self, text: &str) -> Vec<String> {
        self.resolve_each(None, text).into_iter().flatten().flatten().collect()
    }

    /// Finds the served names for each name of a comma-separated list. An unknown name is an error.
    ///
    /// A comma can be part of a name or separate two names. The candidate with the most commas is tried first.
    fn resolve_each<'t>(
        &self,
        field: Option<FilterField>,
        text: &'t str,
    ) -> Vec<Result<Vec<String>, &'t str>> {
        let parts: Vec<&str> = text.split(',').collect();
        let (mut resolved, mut rest) = (Vec::new(), parts.as_slice());
        while let [first, ..] = rest {
            let longest = rest.len().min(COMMAS + 1);
            let found = (1..=longest).rev().find_map(|count| {
                // A trailing comma is not part of a name.
                let text = Some(rest[..count].join(",")).filter(|text| !text.trim_end().ends_with(','))?;
                Some((self.resolve_one(field, &text)?, count))
            });
            let (names, count) = found.map_or((Err(*first), 1), |(names, count)| (Ok(names), count));
            resolved.push(names);
            rest = &rest[count..];
        }
        resolved
    }

    fn resolve_one(&self, field: Option<FilterField>, text: &str) -> Option<Vec<String>> {
        let code = standard_code(field, text).map(|code| vec![code.to_owned()]);
        code.or_else(|| self.0.get(&plain(text)).cloned())
    }

    fn suggest(&self, field: Option<FilterField>, text: &str) -> Vec<String> {
        let wanted = trigrams(&text.to_lowercase());
        let served = self.names().map(|name| (name.as_str(), name.as_str()));
        let spelled = served.chain(standard_spellings(field));
        let mut near: Vec<_> =
            spelled.map(|(name, spelling)| (similarity_key(&wanted, spelling), name)).collect();
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

/// Finds the standard code for a code or name of an exchange or country. Filters accept these standard spellings even
/// if no data is loaded.
fn standard_code(field: Option<FilterField>, text: &str) -> Option<&'static str> {
    match field {
        Some(FilterField::Exchange) => Exchange::find(text).map(|exchange| exchange.mic),
        Some(FilterField::Country) => Country::find(text).map(|country| country.code),
        _ => None,
    }
}

/// All spellings of all exchanges or countries, as pairs of the standard code and a spelling. Empty for other filters.
fn standard_spellings(field: Option<FilterField>) -> Vec<(&'static str, &'static str)> {
    match field {
        Some(FilterField::Exchange) => {
            let of = |one: &'static Exchange| one.codes_and_names().map(|name| (one.mic, name));
            Exchange::all().iter().flat_map(of).collect()
        }
        Some(FilterField::Country) => {
            let of = |one: &'static Country| one.codes_and_names().map(|name| (one.code, name));
            Country::all().iter().flat_map(of).collect()
        }
        _ => vec![],
    }
}

/// Sorts words by their similarity to the client's text. The most similar word is first.
pub(crate) fn sort_by_similarity(mut words: Vec<String>, text: &str) -> Vec<String> {
    let wanted = trigrams(&text.to_lowercase());
    words.sort_unstable_by(|a, b| similarity_key(&wanted, a).cmp(&similarity_key(&wanted, b)));
    words
}

/// Sort key of a name: descending similarity, then length, then alphabetical order.
fn similarity_key<'a>(wanted: &[u32], name: &'a str) -> (Reverse<u32>, usize, &'a str) {
    let parts = trigrams(&name.to_lowercase());
    (
        Reverse(trigram_similarity(wanted, &parts) + trigram_similarity(&parts, wanted)),
        name.chars().count(),
        name,
    )
}

/// Hashes of the trigrams of the words in a text, sorted and without duplicates.
pub(crate) fn trigrams(text: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let padded: Vec<u32> = [u32::from(' '); 2]
            .into_iter()
            .chain(word.chars().map(u32::from))
            .chain([u32::from(' ')])
            .collect();
        all.extend(
            padded.windows(3).map(|w| w[0].wrapping_mul(0x0100_0193) ^ w[1].wrapping_mul(0x0001_9660) ^ w[2]),
        );
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Share of the trigrams in `wanted` that are also in `name`, in thousandths.
pub(crate) fn trigram_similarity(wanted: &[u32], name: &[u32]) -> u32 {
    let shared = wanted.iter().filter(|trigram| name.binary_search(trigram).is_ok()).count();
    let parts = wanted.len().max(1);
    #[expect(clippy::cast_possible_truncation, reason = "a part of the whole is at most 1,000 thousandths")]
    let thousandths = (shared * 1_000 / parts) as u32;
    thousandths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facet_index() -> FacetIndex {
        let mut facet_index = FacetIndex::default();
        for (field, name) in [
            (FilterField::Sector, "Energy"),
            (FilterField::Sector, "Consumer Staples"),
            (FilterField::Sector, "Information Technology"),
            (FilterField::Industry, "Banks"),
            (FilterField::Industry, "Oil, Gas & Consumable Fuels"),
            (FilterField::Exchange, "XNYS"),
            (FilterField::Index, "S&P 500"),
        ] {
            facet_index.insert(field, name.to_owned());
        }
        facet_index
    }

    #[track_caller]
    fn check(field: FilterField, text: &str, expected: &[&str]) {
        let meant = facet_index().resolve(field, text).expect("known");
        assert_eq!(meant, expected, "{text}");
    }

    #[test]
    fn unknown_names_of_a_list_are_skipped() {
        let names: FacetNames =
            ["Oil, Gas & Consumable Fuels", "Banks"].map(str::to_owned).into_iter().collect();
        assert_eq!(names.resolve_known("none, banks ,,Oil, Gas & Consumable Fuels,last").len(), 2);
        assert_eq!(names.resolve_known("none"), Vec::<String>::new());
    }

    #[test]
    fn names_slugs_codes_and_lists_are_understood() {
        check(FilterField::Sector, "consumer-staples", &["Consumer Staples"]);
        check(FilterField::Sector, "ENERGY, Consumer Staples", &["Energy", "Consumer Staples"]);
        check(FilterField::Industry, "Oil, Gas & Consumable Fuels", &["Oil, Gas & Consumable Fuels"]);
        check(
            FilterField::Industry,
            "banks,oil-gas-consumable-fuels,Oil, Gas & Consumable Fuels",
            &["Banks", "Oil, Gas & Consumable Fuels", "Oil, Gas & Consumable Fuels"],
        );
        check(FilterField::Exchange, "NYSE,nasdaq", &["XNYS", "XNAS"]);
        check(FilterField::Country, "USA,de,South Korea", &["US", "DE", "KR"]);
        check(FilterField::Index, "s&p-500", &["S&P 500"]);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let unknown = facet_index().resolve(FilterField::Sector, "Energy,Technology").expect_err("unknown");
        assert_eq!(
            (unknown.word.as_str(), unknown.nearest[0].as_str()),
            ("Technology", "Information Technology")
        );
        assert_eq!(unknown.nearest.len(), 3);
        let unknown = facet_index().resolve(FilterField::Country, "Germony").expect_err("unknown");
        assert!(
            unknown.nearest.len() <= SUGGESTED && unknown.nearest[..3].contains(&"DE".to_owned()),
            "{unknown:?}"
        );
        assert_eq!(facet_index().resolve(FilterField::Sector, "Energy,").expect_err("empty").word, "");
        // Other exchanges have similar names: NYSE Arca, and NYSE Euronext Paris.
        let unknown = facet_index().resolve(FilterField::Exchange, "NYSEE").expect_err("unknown");
        assert_eq!(unknown.nearest[0], "XNYS");
        assert_eq!(
            sort_by_similarity(["bb", "c", "aa", "a"].map(str::to_owned).to_vec(), "x"),
            ["a", "c", "aa", "bb"]
        );
    }
}
