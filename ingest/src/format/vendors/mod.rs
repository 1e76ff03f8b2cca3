//! Vendor formats, one file each.

pub(crate) mod alphavantage;
pub(crate) mod eodhd;
pub(crate) mod ishares;
pub(crate) mod listings;
pub(crate) mod marketstack;
pub(crate) mod massive;
pub(crate) mod sec;
pub(crate) mod sp500;
pub(crate) mod tiingo;
pub(crate) mod wiki;
pub(crate) mod yahoo;
pub(crate) mod yahoo_chart;
