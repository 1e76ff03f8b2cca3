//! The eleven sectors of the Global Industry Classification Standard, with look-up by vendors' names.

use super::table::{plain, reference_table};
use crate::metrics::sector::slug;

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
