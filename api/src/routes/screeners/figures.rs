//! Screener row: a stock row and the figures that a screener can filter and sort by.

use std::borrow::Cow;
use std::sync::LazyLock;

use market::row::{ScreenerFigures, StockRow, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::parameters::{Bounds, SortValue, Sortable};
use crate::read::memory_tables::SecurityRow;

/// Figure of a screener: column, names of the minimum and maximum parameters, and range of valid parameter values.
pub(super) struct ScreenerFigure {
    pub(super) column: &'static str,
    pub(super) min: &'static str,
    pub(super) max: &'static str,
    pub(super) bounds: Bounds,
    /// Name and unit of the figure, as the descriptions of its parameters show them.
    pub(super) meaning: &'static str,
    pub(super) of: fn(&SecurityRow) -> Option<Decimal>,
}

macro_rules! figures {
    ($($column:literal $min:literal $max:literal $bounds:ident $meaning:literal $of:expr),* $(,)?) => {
        &[$(ScreenerFigure { column: $column, min: $min, max: $max, bounds: Bounds::$bounds, meaning: $meaning, of: $of }),*]
    };
}

pub(super) const FIGURES: &[ScreenerFigure] = figures![
    "dividend_yield" "min_yield" "max_yield" Percent "`dividend_yield`, the headline yield, percent"
        |m| m.stock.dividend_yield.map(|v| v.0),
    "yield_ttm" "min_yield_ttm" "max_yield_ttm" Percent "trailing yield, percent"
        |m| m.figures.screened.yield_ttm.map(|v| v.0),
    "payout_ratio" "min_payout_ratio" "max_payout_ratio" Percent "payout ratio, percent"
        |m| m.figures.screened.payout_ratio.map(|v| v.0),
    "growth_1y" "min_growth_1y" "max_growth_1y" SignedPercent "dividend growth of one year, percent"
        |m| m.figures.screened.growth_1y.map(|v| v.0),
    "growth_3y" "min_growth_3y" "max_growth_3y" SignedPercent "dividend growth a year over three years, percent"
        |m| m.figures.screened.growth_3y.map(|v| v.0),
    "growth_5y" "min_growth_5y" "max_growth_5y" SignedPercent "dividend growth a year over five years, percent"
        |m| m.figures.screened.growth_5y.map(|v| v.0),
    "growth_10y" "min_growth_10y" "max_growth_10y" SignedPercent "dividend growth a year over ten years, percent"
        |m| m.figures.screened.growth_10y.map(|v| v.0),
    "increase_streak_years" "min_streak" "max_streak" Amount "`increase_streak_years`"
        |m| m.stock.increase_streak_years.map(Decimal::from),
    "market_cap" "min_market_cap" "max_market_cap" Amount "market capitalisation"
        |m| m.stock.market_cap.map(Decimal::from),
    "price" "min_price" "max_price" Amount "price"
        |m| m.stock.price.map(|v| v.0),
    "volume" "min_volume" "max_volume" Amount "volume of the latest session, shares"
        |m| m.figures.screened.volume.map(Decimal::from),
    "pe_ratio" "min_pe" "max_pe" Any "price-earnings ratio"
        |m| m.figures.screened.pe_ratio.map(|v| v.0),
    "beta" "min_beta" "max_beta" Any "beta"
        |m| m.figures.screened.beta.map(|v| v.0),
];

pub(super) const SORT_KEYS: &[&str] = &[
    "symbol",
    "name",
    "dividend_yield",
    "yield_ttm",
    "yield_forward",
    "payout_ratio",
    "growth_1y",
    "growth_3y",
    "growth_5y",
    "growth_10y",
    "increase_streak_years",
    "payment_streak_years",
    "market_cap",
    "price",
    "volume",
    "pe_ratio",
    "beta",
    "next_ex_date",
];

/// A stock row and the figures of the screeners.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ScreenerRow {
    #[serde(flatten)]
    stock: StockRow,
    #[serde(flatten)]
    figures: ScreenerFigures,
}

/// Columns of the stock row, followed by the columns of the figures.
pub(crate) static COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| StockRow::COLUMNS.iter().chain(ScreenerFigures::COLUMNS).copied().collect());

impl From<&SecurityRow> for ScreenerRow {
    fn from(member: &SecurityRow) -> Self {
        Self { stock: member.stock.clone(), figures: member.figures.screened.clone() }
    }
}

impl Sortable for SecurityRow {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        let number = |value: Option<Decimal>| value.map(SortValue::Number);
        match key {
            "symbol" | "name" => self.stock.sort_value(key),
            "next_ex_date" => self.stock.next_ex_date.map(SortValue::Day),
            "payment_streak_years" => number(self.figures.screened.payment_streak_years.map(Decimal::from)),
            "yield_forward" => number(self.figures.screened.yield_forward.map(|value| value.0)),
            _ => number(
                FIGURES.iter().find(|figure| figure.column == key).and_then(|figure| (figure.of)(self)),
            ),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.stock.symbol)
    }
}
