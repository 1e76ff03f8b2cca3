//! Prices: daily bars, adjusted and aggregated on request.
//!
//! Prices are stored raw, in packed columns of scaled integers. [`market::price`] adjusts and writes these columns. Ten
//! years of prices are the largest response.

pub(crate) mod history;
pub(crate) mod latest;
pub(crate) mod market;
mod series;

use std::sync::LazyLock;

use ::market::price::{PriceColumn, PricePoint};
use serde::Serialize;
use utoipa::ToSchema;

/// Fields of a price row in a list, in order.
static ROW_COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let is_latest = |column: &PriceColumn| {
        matches!(column, PriceColumn::Exchange | PriceColumn::PreviousClose | PriceColumn::AgeSessions)
    };
    PriceColumn::ALL.iter().filter(|column| !is_latest(column)).map(|column| column.as_str()).collect()
});

/// Price point with its symbol and currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceRow {
    /// Canonical ticker.
    symbol: String,
    /// ISO 4217 currency of every price.
    currency: Option<String>,
    #[serde(flatten)]
    point: PricePoint,
}
