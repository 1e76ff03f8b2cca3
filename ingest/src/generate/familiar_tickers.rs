//! Well-known tickers for the demo market. The shape of each security is similar to the real company or fund.

use super::naming::{
    CONSUMER_DISCRETIONARY, CONSUMER_STAPLES, ENERGY, FINANCIALS, HEALTH_CARE, INFORMATION_TECHNOLOGY,
    REAL_ESTATE,
};

/// Company or fund with a well-known ticker.
#[derive(Debug)]
pub(super) struct FamiliarSecurity {
    index: u64,
    pub(super) ticker: &'static str,
    pub(super) name: &'static str,
    /// Index of the sector in [`super::naming::SECTORS`], and index of the industry within the sector.
    pub(super) sector: usize,
    pub(super) industry: usize,
}

const fn familiar(
    index: u64,
    ticker: &'static str,
    name: &'static str,
    sector: usize,
    industry: usize,
) -> FamiliarSecurity {
    FamiliarSecurity { index, ticker, name, sector, industry }
}

const FAMILIAR: [FamiliarSecurity; 18] = [
    familiar(1, "KO", "Coca-Cola", CONSUMER_STAPLES, 1),
    familiar(2, "PEP", "PepsiCo", CONSUMER_STAPLES, 1),
    familiar(3, "XOM", "Exxon Mobil", ENERGY, 1),
    familiar(7, "MSFT", "Microsoft", INFORMATION_TECHNOLOGY, 1),
    familiar(15, "AMZN", "Amazon.com", CONSUMER_DISCRETIONARY, 0),
    familiar(17, "AAPL", "Apple", INFORMATION_TECHNOLOGY, 2),
    familiar(20, "COST", "Costco Wholesale", CONSUMER_STAPLES, 2),
    familiar(22, "JNJ", "Johnson & Johnson", HEALTH_CARE, 0),
    familiar(29, "O", "Realty Income", REAL_ESTATE, 0),
    familiar(31, "EPD", "Enterprise Products Partners", ENERGY, 0),
    familiar(35, "JPM", "JPMorgan Chase", FINANCIALS, 0),
    familiar(37, "BF", "Brown-Forman", CONSUMER_STAPLES, 1),
    familiar(47, "BND", "Total Bond Market Fund", FINANCIALS, 2),
    familiar(48, "SCHD", "US Dividend Equity Fund", FINANCIALS, 2),
    familiar(50, "VXUS", "International Stock Fund", FINANCIALS, 2),
    familiar(57, "HD", "Home Depot", CONSUMER_DISCRETIONARY, 0),
    familiar(58, "V", "Visa", FINANCIALS, 2),
    familiar(59, "VYM", "High Dividend Yield Fund", FINANCIALS, 2),
];

/// Familiar company or fund with a security index; `None` if the index has none.
pub(super) fn familiar_at(index: u64) -> Option<&'static FamiliarSecurity> {
    FAMILIAR.iter().find(|familiar| familiar.index == index)
}
