//! Well-known tickers for the demo market. Their dividends and prices are synthetic, but follow a similar pattern.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::naming::SECTORS;

/// Company or fund with a well-known ticker.
#[derive(Debug)]
pub(super) struct FamiliarSecurity {
    pub(super) ticker: &'static str,
    pub(super) name: &'static str,
    /// Index of the sector in [`SECTORS`].
    pub(super) sector: usize,
    pub(super) industry: &'static str,
    /// ISIN; empty if the security has a synthetic one.
    pub(super) isin: &'static str,
}

/// Well-known companies and funds by security index.
static FAMILIAR: LazyLock<BTreeMap<u64, FamiliarSecurity>> = LazyLock::new(|| {
    let familiar = |line: &'static str| {
        let [index, ticker, name, sector, industry, isin] = line.split(',').collect::<Vec<_>>()[..] else {
            return None;
        };
        let sector = SECTORS.iter().position(|(known, _)| *known == sector)?;
        Some((index.parse().ok()?, FamiliarSecurity { ticker, name, sector, industry, isin }))
    };
    include_str!("familiar_tickers.csv").lines().filter_map(familiar).collect()
});

/// Well-known company or fund at a security index; `None` if the security has a synthetic ticker.
pub(super) fn familiar_at(index: u64) -> Option<&'static FamiliarSecurity> {
    FAMILIAR.get(&index)
}
