//! Screener row: a stock row and the figures of the screeners.

use std::borrow::Cow;
use std::sync::LazyLock;

use market::row::{ScreenerFigures, StockRow, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::figures::FIGURES;
use crate::parameters::{SortValue, Sortable};
use crate::read::memory_tables::SecurityRow;

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
