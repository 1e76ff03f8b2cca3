//! The eleven sectors of the Global Industry Classification Standard, with look-up by vendors' names.

use std::sync::LazyLock;

use super::spelling::plain;
use super::table::{further_names, rows};
use crate::metrics::sector::slug;

/// Sector of the Global Industry Classification Standard.
#[derive(Debug, PartialEq, Eq)]
pub struct Sector {
    /// Name of the sector, for example `Health Care`. Responses contain this name.
    pub name: &'static str,
    /// Other common names, in lower case without blanks and punctuation.
    aliases: Vec<&'static str>,
}

/// Sectors in the order of the Global Industry Classification Standard.
static ALL: LazyLock<Vec<Sector>> = LazyLock::new(|| {
    let sector = |[name, aliases]: [&'static str; 2]| Sector { name, aliases: further_names(aliases) };
    rows(include_str!("sector.txt")).map(sector).collect()
});

impl Sector {
    /// All sectors.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Sector of a vendor's name or a slug; `None` if unknown.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = plain(name);
        ALL.iter().find(|sector| plain(sector.name) == name || sector.aliases.contains(&name.as_str()))
    }

    /// Slug of the name for URL paths, for example `health-care`.
    pub fn slug(&self) -> String {
        slug(self.name)
    }
}

#[cfg(test)]
mod tests {
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
