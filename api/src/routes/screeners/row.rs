//! The screener's row.

use std::borrow::Cow;
use std::sync::LazyLock;

use market::row::{StockRow, TableRow};
use market::value::Exact;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::figures::FIGURES;
use crate::parameters::{Listed, SortValue};
use crate::read::universe::Member;

/// A stock row with the screeners' figures.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ScreenerRow {
    #[serde(flatten)]
    stock: StockRow,
    /// Trailing regular yield, percent.
    yield_ttm: Option<Exact>,
    /// Indicated yield, percent.
    yield_forward: Option<Exact>,
    /// Payout ratio, percent.
    payout_ratio: Option<Exact>,
    /// Growth of the last complete year, percent.
    growth_1y: Option<Exact>,
    /// Compound growth a year, percent.
    growth_3y: Option<Exact>,
    /// Compound growth a year, percent.
    growth_5y: Option<Exact>,
    /// Compound growth a year, percent.
    growth_10y: Option<Exact>,
    /// Consecutive years with a regular payment.
    payment_streak_years: Option<i32>,
    /// Price over earnings, a ratio.
    pe_ratio: Option<Exact>,
    /// Against the benchmark.
    beta: Option<Exact>,
    /// Shares of the latest session.
    volume: Option<i64>,
    /// Dividend Aristocrat (R15).
    is_dividend_aristocrat: bool,
    /// Dividend King (R15).
    is_dividend_king: bool,
}

/// Columns beyond the stock row's.
const OWN: &[&str] = &[
    "yield_ttm",
    "yield_forward",
    "payout_ratio",
    "growth_1y",
    "growth_3y",
    "growth_5y",
    "growth_10y",
    "payment_streak_years",
    "pe_ratio",
    "beta",
    "volume",
    "is_dividend_aristocrat",
    "is_dividend_king",
];

/// Every column, in order.
pub(crate) static COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| StockRow::COLUMNS.iter().chain(OWN).copied().collect());

impl From<&Member> for ScreenerRow {
    fn from(member: &Member) -> Self {
        let figures = &member.figures;
        Self {
            stock: member.stock.clone(),
            yield_ttm: figures.yield_ttm,
            yield_forward: figures.yield_forward,
            payout_ratio: figures.payout_ratio,
            growth_1y: figures.growth_1y,
            growth_3y: figures.growth_3y,
            growth_5y: figures.growth_5y,
            growth_10y: figures.growth_10y,
            payment_streak_years: figures.payment_streak_years,
            pe_ratio: figures.pe_ratio,
            beta: figures.beta,
            volume: figures.volume,
            is_dividend_aristocrat: figures.is_dividend_aristocrat,
            is_dividend_king: figures.is_dividend_king,
        }
    }
}

impl Listed for Member {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        let number = |value: Option<Decimal>| value.map(SortValue::Number);
        match key {
            "symbol" | "name" => self.stock.sort_value(key),
            "next_ex_date" => self.stock.next_ex_date.map(SortValue::Day),
            "payment_streak_years" => number(self.figures.payment_streak_years.map(Decimal::from)),
            "yield_forward" => number(self.figures.yield_forward.map(|value| value.0)),
            _ => number(
                FIGURES.iter().find(|figure| figure.column == key).and_then(|figure| (figure.of)(self)),
            ),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.stock.symbol)
    }
}
