//! API calls behind the page of a security.

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::session::form::Form;

/// Ranges of the price chart: value of the parameter `range`, title, and required years of history. 0 years mean that
/// every plan includes the range.
pub(crate) const RANGES: [(&str, &str, i32); 4] =
    [("1y", "1 year", 1), ("5y", "5 years", 5), ("10y", "10 years", 10), ("max", "All", 0)];
/// Adjustments of the price chart: value of the parameter `prices`, and title.
pub(crate) const ADJUSTMENTS: [(&str, &str); 3] =
    [("split", "Split-adjusted close"), ("raw", "Raw close"), ("all", "Total return")];
/// Default range, if the reader's history includes it.
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
    /// Reads the choice. An unknown range, or a range longer than the reader's history, is replaced by a default range.
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

/// API calls about one security.
#[derive(Debug)]
pub(crate) struct SecurityCalls {
    symbol: String,
}

impl SecurityCalls {
    pub(crate) fn of(symbol: &str) -> Self {
        Self { symbol: encode(symbol) }
    }

    pub(crate) fn profile(&self) -> String {
        format!("/v1/stocks/{}", self.symbol)
    }

    pub(crate) fn metrics(&self) -> String {
        format!("/v1/stocks/{}/metrics", self.symbol)
    }

    pub(crate) fn years(&self) -> String {
        format!("{}?fields=annual_totals", self.metrics())
    }

    pub(crate) fn dividends(&self) -> String {
        format!("/v1/dividends/history?symbols={}&include_projected=true&limit=1000", self.symbol)
    }

    pub(crate) fn splits(&self) -> String {
        format!("/v1/stocks/{}/splits?limit=200", self.symbol)
    }

    pub(crate) fn holdings(&self) -> String {
        format!("/v1/etfs/{}/holdings?limit=25", self.symbol)
    }

    pub(crate) fn etf_holders(&self) -> String {
        format!("/v1/stocks/{}/etf-holders?limit=25", self.symbol)
    }

    /// API call for the closes of the chart. The longest range has weekly closes, so that it fits into one response.
    pub(crate) fn prices(&self, choice: &PriceChoice) -> String {
        let (interval, limit) = match choice.range {
            "1y" => ("daily", 400),
            "5y" => ("daily", 1_500),
            "10y" => ("daily", 3_000),
            _ => ("weekly", 5_000),
        };
        format!(
            "/v1/prices/{}?range={}&interval={interval}&adjustment={}&fields=date,close&sort=date.asc&limit={limit}",
            self.symbol, choice.range, choice.adjustment
        )
    }

    /// API call of the block whose CSV file has this name, without extension; `None` for an unknown name.
    pub(crate) fn by_file(&self, name: &str, choice: &PriceChoice) -> Option<String> {
        Some(match name {
            "profile" => self.profile(),
            "metrics" => self.metrics(),
            "years" => self.years(),
            "dividends" => self.dividends(),
            "splits" => self.splits(),
            "holdings" => self.holdings(),
            "etf-holders" => self.etf_holders(),
            "prices" => self.prices(choice),
            _ => return None,
        })
    }
}
