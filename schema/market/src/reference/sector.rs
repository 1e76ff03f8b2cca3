//! The eleven sectors of the Global Industry Classification Standard.

use super::spelling::plain;
use crate::measure::sector::slug;

/// A sector, by its one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sector {
    /// The name that is served, such as `Health Care`.
    pub name: &'static str,
    /// What others call it, in plain letters.
    aliases: &'static [&'static str],
}

/// Every sector, in the standard's order.
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
    /// Every sector.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// The sector a vendor's name or a slug means; `None` for another name.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = plain(name);
        ALL.iter().find(|sector| plain(sector.name) == name || sector.aliases.contains(&name.as_str()))
    }

    /// The name in an address: `health-care`.
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
