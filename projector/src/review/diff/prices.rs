//! Comparison of price bars, by day and field, after unpacking.

use std::collections::HashMap;

use anyhow::Context;
use chrono::NaiveDate;
use codec::bars::PackedBars;
use market::bars::{Bar, Bars, MISSING};
use market::day::date_of;
use rust_decimal::Decimal;
use store::facts::read_packed_bars;
use tokio_postgres::types::ToSql;

use super::cell::CellValue;
use super::difference::{ChangeKind, ColumnDifference, RowDifference};
use super::generation_reader::GenerationReader;
use super::tables::PRICES;

const ROWS: &str = include_str!("../../../queries/diff_prices.sql");

/// Field of a bar: its name, the function that reads it, and a flag. The flag is `true` if the field is a price, which
/// has decimal places.
pub(crate) type BarField = (&'static str, fn(&Bar) -> i64, bool);

pub(crate) const BAR_FIELDS: [BarField; 7] = [
    ("open", |bar| bar.open, true),
    ("high", |bar| bar.high, true),
    ("low", |bar| bar.low, true),
    ("close", |bar| bar.close, true),
    ("volume", |bar| bar.volume, false),
    ("vwap", |bar| bar.vwap, true),
    ("trade_count", |bar| bar.trade_count, false),
];

type BarsByYear = HashMap<(String, i32), Bars>;

/// Day with different bars of a security, with the bar of each version.
pub(crate) struct PriceDifference<'a> {
    symbol: &'a str,
    pub(super) date: NaiveDate,
    pub(super) change: ChangeKind,
    bars: [Option<Bar>; 2],
    scales: [u32; 2],
}

/// Compares the prices of the given years, each a symbol and a calendar year. Calls `note` for every differing day.
/// Days before `since` are skipped.
pub(super) async fn compare_years(
    [a, b]: &[GenerationReader; 2],
    years: &[(String, i32)],
    since: Option<NaiveDate>,
    mut note: impl FnMut(&PriceDifference<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut left, mut right) = tokio::try_join!(load_bars(a, years), load_bars(b, years))?;
    for key in years {
        let bars = [left.remove(key).unwrap_or_default(), right.remove(key).unwrap_or_default()];
        compare_bars(&key.0, [&bars[0], &bars[1]], |day| match since {
            Some(since) if day.date < since => Ok(()),
            _ => note(day),
        })?;
    }
    Ok(())
}

/// Compares two lists of bars of one security. Each list is sorted by day. Calls `note` for every differing day.
pub(crate) fn compare_bars<'a>(
    symbol: &'a str,
    bars: [&Bars; 2],
    mut note: impl FnMut(&PriceDifference<'a>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut next = [0, 0];
    loop {
        let days = [0, 1].map(|side| bars[side].day.get(next[side]).copied());
        let Some(day) = days.iter().flatten().min().copied() else { return Ok(()) };
        let own = [0, 1].map(|side| (days[side] == Some(day)).then(|| bars[side].bar(next[side])));
        for side in (0..2).filter(|side| own[*side].is_some()) {
            next[side] += 1;
        }
        let scales = [bars[0].scale, bars[1].scale];
        if let Some(day) = PriceDifference::compare(symbol, date_of(day), own, scales) {
            note(&day)?;
        }
    }
}

impl<'a> PriceDifference<'a> {
    fn compare(symbol: &'a str, date: NaiveDate, bars: [Option<Bar>; 2], scales: [u32; 2]) -> Option<Self> {
        if scales[0] == scales[1] && bars[0] == bars[1] {
            return None;
        }
        let change = match bars {
            [None, _] => ChangeKind::Added,
            [_, None] => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        let day = Self { symbol, date, change, bars, scales };
        (change != ChangeKind::Changed || day.differing_fields().next().is_some()).then_some(day)
    }

    pub(super) fn differing_fields(&self) -> impl Iterator<Item = &'static str> {
        self.differing_columns().map(|(name, ..)| *name)
    }

    /// Converts this difference to a row with one column per differing field.
    pub(super) fn to_row(&self) -> RowDifference {
        let changed = |field: &BarField| {
            let [a, b] = [0, 1].map(|side| self.value(side, field));
            ColumnDifference { column: field.0.to_owned(), a, b }
        };
        RowDifference {
            table: PRICES,
            key: vec![
                ("symbol", CellValue::Text(self.symbol.to_owned())),
                ("date", CellValue::Date(self.date)),
            ],
            change: self.change,
            columns: self.differing_columns().map(changed).collect(),
            why: Vec::new(),
        }
    }

    fn differing_columns(&self) -> impl Iterator<Item = &'static BarField> {
        BAR_FIELDS.iter().filter(|(_, of, is_price)| {
            let values = [0, 1].map(|side| self.bars[side].as_ref().map_or(MISSING, of));
            if self.scales[0] == self.scales[1] || !is_price || values.contains(&MISSING) {
                values[0] != values[1]
            } else {
                Decimal::new(values[0], self.scales[0]) != Decimal::new(values[1], self.scales[1])
            }
        })
    }

    fn value(&self, side: usize, (_, of, is_price): &BarField) -> CellValue {
        match self.bars[side].as_ref().map_or(MISSING, of) {
            MISSING => CellValue::Null,
            value => {
                CellValue::Decimal(Decimal::new(value, if *is_price { self.scales[side] } else { 0 }).into())
            }
        }
    }
}

async fn load_bars(reader: &GenerationReader, years: &[(String, i32)]) -> anyhow::Result<BarsByYear> {
    let symbols: Vec<&str> = years.iter().map(|(symbol, _)| symbol.as_str()).collect();
    let numbers: Vec<i32> = years.iter().map(|(_, year)| *year).collect();
    let parameters: [&(dyn ToSql + Sync); 2] = [&symbols, &numbers];
    let mut read = BarsByYear::with_capacity(years.len());
    for row in reader.client.query(ROWS, &parameters).await? {
        let (symbol, year): (String, i32) = (row.try_get("symbol")?, row.try_get("year")?);
        let packed: PackedBars = read_packed_bars(&row)?;
        let bars =
            packed.unpack().with_context(|| format!("cannot unpack the prices of {symbol} in {year}"))?;
        read.insert((symbol, year), bars);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(close: i64) -> Bar {
        let none = MISSING;
        Bar { day: 9, open: none, high: none, low: none, close, volume: 5, vwap: none, trade_count: none }
    }

    #[test]
    fn days_differ_by_value_and_not_by_scale() {
        let date = "2024-06-28".parse().unwrap();
        let check = |bars, scales, expected: Option<(ChangeKind, &[&str])>| {
            let found = PriceDifference::compare("AAA", date, bars, scales);
            let found = found.map(|day| (day.change, day.differing_fields().collect::<Vec<_>>()));
            assert_eq!(found, expected.map(|(change, fields)| (change, fields.to_vec())));
        };
        check([Some(bar(20)), Some(bar(20))], [0, 0], None);
        check([Some(bar(20)), Some(bar(2000))], [0, 2], None);
        check([Some(bar(20)), Some(bar(2001))], [0, 2], Some((ChangeKind::Changed, &["close"])));
        check([None, Some(bar(20))], [0, 0], Some((ChangeKind::Added, &["close", "volume"])));
        let row =
            PriceDifference::compare("AAA", date, [Some(bar(20)), Some(bar(2050))], [0, 2]).unwrap().to_row();
        assert_eq!(row.columns[0].b.to_string(), "20.5");
    }
}
