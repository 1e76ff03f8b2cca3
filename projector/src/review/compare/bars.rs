//! Comparison of price bars, by day and field.

use chrono::NaiveDate;
use market::bars::{Bar, Bars, MISSING};
use market::day::date_of;
use rust_decimal::Decimal;

use super::row_difference::{CellValue, ChangeKind, ColumnDifference, RowDifference};
use super::rows::PRICES;

/// Field of a bar: its name, the function that reads it, and a flag. The flag is `true` if the field is a price, which
/// has decimal places.
pub(crate) type BarField = (&'static str, fn(&Bar) -> i64, bool);

const CLOSE: BarField = ("close", |bar| bar.close, true);

pub(crate) const BAR_FIELDS: [BarField; 7] = [
    ("open", |bar| bar.open, true),
    ("high", |bar| bar.high, true),
    ("low", |bar| bar.low, true),
    CLOSE,
    ("volume", |bar| bar.volume, false),
    ("vwap", |bar| bar.vwap, true),
    ("trade_count", |bar| bar.trade_count, false),
];

pub(crate) struct BarPair {
    pub(crate) date: NaiveDate,
    bars: [Option<Bar>; 2],
    scales: [u32; 2],
}

/// Calls `visit` for every day on which a version has a bar. The bars of a version are sorted by day.
pub(crate) fn each_pair(
    bars: [&Bars; 2],
    mut visit: impl FnMut(&BarPair) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut next, scales) = ([0, 0], bars.map(|bars| bars.scale));
    loop {
        let days = [0, 1].map(|side| bars[side].day.get(next[side]).copied());
        let Some(day) = days.iter().flatten().min().copied() else { return Ok(()) };
        let own = [0, 1].map(|side| (days[side] == Some(day)).then(|| bars[side].bar(next[side])));
        for side in (0..2).filter(|side| own[*side].is_some()) {
            next[side] += 1;
        }
        visit(&BarPair { date: date_of(day), bars: own, scales })?;
    }
}

impl BarPair {
    pub(super) fn change(&self) -> ChangeKind {
        ChangeKind::of(self.bars.each_ref().map(Option::as_ref))
    }

    pub(crate) fn differs(&self) -> bool {
        let is_same = self.scales[0] == self.scales[1] && self.bars[0] == self.bars[1];
        !is_same
            && (self.change() != ChangeKind::Changed
                || BAR_FIELDS.iter().any(|field| self.field_differs(field)))
    }

    pub(crate) fn has_both(&self, (_, of, _): &BarField) -> bool {
        self.bars.iter().all(|bar| bar.as_ref().is_some_and(|bar| of(bar) != MISSING))
    }

    pub(crate) fn field_differs(&self, field: &BarField) -> bool {
        let values = [0, 1].map(|side| self.bars[side].as_ref().map_or(MISSING, field.1));
        match self.scales[0] == self.scales[1] || !field.2 || values.contains(&MISSING) {
            true => values[0] != values[1],
            false => self.value(0, field) != self.value(1, field),
        }
    }

    /// Closes of both versions; `None` if they are equal.
    pub(crate) fn differing_closes(&self) -> Option<[Option<Decimal>; 2]> {
        let close = |side: usize| {
            let bar = self.bars[side].as_ref().filter(|bar| bar.close != MISSING)?;
            Some(Decimal::new(bar.close, self.scales[side]))
        };
        self.field_differs(&CLOSE).then(|| [close(0), close(1)])
    }

    pub(super) fn to_row(&self, symbol: &str) -> RowDifference {
        let changed = |field: &BarField| {
            let [a, b] = [0, 1].map(|side| self.value(side, field));
            ColumnDifference { column: field.0.to_owned(), a, b }
        };
        let differing = BAR_FIELDS.iter().filter(|field| self.field_differs(field));
        let key = [("symbol", CellValue::Text(symbol.to_owned())), ("date", CellValue::Date(self.date))];
        RowDifference {
            table: PRICES,
            key: key.into(),
            change: self.change(),
            columns: differing.map(changed).collect(),
            why: Vec::new(),
        }
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
            let pair = BarPair { date, bars, scales };
            let fields = BAR_FIELDS.iter().filter(|field| pair.field_differs(field)).map(|field| field.0);
            let found = pair.differs().then(|| (pair.change(), fields.collect::<Vec<_>>()));
            assert_eq!(found, expected.map(|(change, fields)| (change, fields.to_vec())));
        };
        check([Some(bar(20)), Some(bar(20))], [0, 0], None);
        check([Some(bar(20)), Some(bar(2000))], [0, 2], None);
        check([Some(bar(20)), Some(bar(2001))], [0, 2], Some((ChangeKind::Changed, &["close"])));
        check([None, Some(bar(20))], [0, 0], Some((ChangeKind::Added, &["close", "volume"])));
        let row = BarPair { date, bars: [Some(bar(20)), Some(bar(2050))], scales: [0, 2] }.to_row("AAA");
        assert_eq!(row.columns[0].b.to_string(), "20.5");
    }
}
