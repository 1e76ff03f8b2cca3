//! API calls behind the page of a security.

use market::text_enum;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::session::form::Form;

/// Ranges of the price chart: value of `range`, title, and required years of history (0 for none).
pub(crate) const RANGES: [(&str, &str, i32); 4] =
    [("1y", "1 year", 1), ("5y", "5 years", 5), ("10y", "10 years", 10), ("max", "All", 0)];
/// Adjustments of the price chart, each with the value of the parameter `prices` and a title.
pub(crate) const ADJUSTMENTS: [(&str, &str); 3] =
    [("split", "Split-adjusted close"), ("raw", "Raw close"), ("all", "Total return")];
/// Default range, if the reader may see 5 years of history. Otherwise the default is `1y`, or `max` if the reader may
/// see less than one year.
const FIRST_RANGE: &str = "5y";

/// Chosen range and adjustment of the price chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PriceChoice {
    pub(crate) range: &'static str,
    pub(crate) adjustment: &'static str,
    /// Title of the adjustment.
    pub(crate) title: &'static str,
}

impl PriceChoice {
    /// Reads the choice from the query. An unknown range, or one beyond the reader's history, becomes the default.
    pub(crate) fn read(parameters: &Form, depth_years: i32) -> Self {
        let included = RANGES.iter().filter(|(.., years)| *years <= depth_years).map(|(range, ..)| *range);
        let included: Vec<&str> = included.collect();
        let named = |wanted: &str| included.iter().copied().find(|range| *range == wanted);
        let range = named(parameters.text("range")).or(named(FIRST_RANGE)).or(named("1y")).unwrap_or("max");
        let adjustment = ADJUSTMENTS.iter().find(|(name, _)| *name == parameters.text("prices"));
        let (adjustment, title) = *adjustment.unwrap_or(&ADJUSTMENTS[0]);
        Self { range, adjustment, title }
    }

    /// Query of the page for this choice.
    pub(crate) fn query(&self) -> String {
        format!("?range={}&prices={}", self.range, self.adjustment)
    }
}

text_enum! {
    /// Block of the page of a security. The text of a variant is the name of the block's CSV file, without extension.
    pub enum SecurityBlock {
        Profile = "profile", Metrics = "metrics", Years = "years", Dividends = "dividends", Splits = "splits",
        Holdings = "holdings", EtfHolders = "etf-holders", Prices = "prices",
    }
}

impl SecurityBlock {
    /// Path and query of the API call that returns the rows of the block.
    pub(crate) fn call(self, symbol: &str, choice: &PriceChoice) -> String {
        let symbol = encode(symbol);
        match self {
            Self::Profile => format!("/v1/stocks/{symbol}"),
            Self::Metrics => format!("/v1/stocks/{symbol}/metrics"),
            Self::Years => format!("/v1/stocks/{symbol}/metrics?fields=annual_totals"),
            Self::Dividends => {
                format!("/v1/dividends/history?symbols={symbol}&include_projected=true&limit=1000")
            }
            Self::Splits => format!("/v1/stocks/{symbol}/splits?limit=200"),
            Self::Holdings => format!("/v1/etfs/{symbol}/holdings?limit=25"),
            Self::EtfHolders => format!("/v1/stocks/{symbol}/etf-holders?limit=25"),
            Self::Prices => prices_call(&symbol, choice),
        }
    }
}

/// API call for the closing prices of the chart. For the range `max`, it requests weekly prices, so that they fit into
/// one response.
fn prices_call(symbol: &str, choice: &PriceChoice) -> String {
    let (interval, limit) = match choice.range {
        "1y" => ("daily", 400),
        "5y" => ("daily", 1_500),
        "10y" => ("daily", 3_000),
        _ => ("weekly", 5_000),
    };
    format!(
        "/v1/prices/{symbol}?range={}&interval={interval}&adjustment={}&fields=date,close&sort=date.asc&limit={limit}",
        choice.range, choice.adjustment
    )
}
