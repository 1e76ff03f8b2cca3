//! The eleven sectors of the Global Industry Classification Standard, with look-up by vendors' names.

use super::spelling::plain;
use crate::metrics::sector::slug;

/// Sector of the Global Industry Classification Standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sector {
    /// Name served in responses, for example `Health Care`.
    pub name: &'static str,
    /// Further names in lower case without blanks and punctuation.
    aliases: &'static [&'static str],
}

/// Sectors in the order of the standard.
static ALL: [Sector; 11] = [
    Sector { name: "Energy", aliases: &["oilgas", "energytransportation"] },
    Sector { name: "Materials", aliases: &["basicmaterials", "basicindustries", "rawmaterials"] },
    Sector {
        name: "Industrials",
        aliases: &["industrial", "industrialgoods", "capitalgoods", "transportation"],
    },
    Sector {
        name: "Consumer Discretionary",
        aliases: &["consumercyclical", "consumercyclicals", "consumerdiscretion", "consumerservices"],
    },
    Sector {
        name: "Consumer Staples",
        aliases: &["consumerdefensive", "consumernoncyclical", "consumernoncyclicals", "consumernondurables"],
    },
    Sector { name: "Health Care", aliases: &["healthcare", "healthcaresector"] },
    Sector { name: "Financials", aliases: &["financial", "financialservices", "finance"] },
    Sector {
        name: "Information Technology",
        aliases: &["technology", "informationtechnologies", "infotech", "tech", "it"],
    },
    Sector {
        name: "Communication Services",
        aliases: &[
            "communications",
            "communication",
            "communicationservice",
            "telecommunicationservices",
            "telecommunications",
            "telecommunication",
            "telecom",
        ],
    },
    Sector { name: "Utilities", aliases: &["utility", "publicutilities"] },
    Sector { name: "Real Estate", aliases: &["realestateinvestmenttrusts"] },
];

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

    /// Slug for URL paths, for example `health-care`.
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
