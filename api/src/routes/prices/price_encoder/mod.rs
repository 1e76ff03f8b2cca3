//! Price points to bytes, directly from the columns. Structs and serde take five times as long for ten years of days.
//!
//! Invariant: the bytes equal those of [`market::price::PricePoint`] under serde, for every basis and interval.

mod cell;
mod digits;
#[cfg(test)]
mod tests;
mod text;
mod values;

use market::decimal::round;
use market::price::{AdjustedBars, PriceBasis, SessionRange, micros};

use crate::parameters::{Format, Output};
use cell::Cell;
use digits::divided;
use text::Text;
use values::Values;

/// Usual maximum bytes of a point.
const POINT: usize = 320;

/// Symbol and currency of a security's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) symbol: &'a str,
    pub(super) currency: Option<&'a str>,
}

fn columns(output: &Output) -> &[&'static str] {
    output.fields.as_deref().unwrap_or(output.columns)
}

/// Writer of price points.
pub(super) struct Writer<'a> {
    whose: Whose<'a>,
    cells: Vec<Cell>,
    /// Bytes before the value, one entry per column.
    labels: Vec<Vec<u8>>,
    values: Values<'a>,
    text: Text,
}

impl<'a> Writer<'a> {
    /// Creates a writer with room for `points` points.
    pub(super) fn new(
        adjusted: &'a AdjustedBars<'a>,
        whose: Whose<'a>,
        output: &Output,
        points: usize,
    ) -> Self {
        let columns = columns(output);
        let is_csv = output.format == Format::Csv;
        let label = |(index, column): (usize, &&str)| match (is_csv, index) {
            (true, 0) => Vec::new(),
            (true, _) => b",".to_vec(),
            (false, 0) => format!("{{\"{column}\":").into_bytes(),
            (false, _) => format!(",\"{column}\":").into_bytes(),
        };
        Self {
            whose,
            cells: columns.iter().map(|column| Cell::named(column)).collect(),
            labels: columns.iter().enumerate().map(label).collect(),
            values: Values::new(adjusted),
            text: Text {
                out: Vec::with_capacity(points * POINT + 512),
                quote: (output.text_decimals && !is_csv).then_some(b'"'),
                is_csv,
            },
        }
    }

    /// Rows of these periods, in order: items of a JSON array, or CSV records.
    pub(super) fn records<'p>(mut self, periods: impl Iterator<Item = &'p SessionRange>) -> Vec<u8> {
        for (index, period) in periods.enumerate() {
            if index > 0 && !self.text.is_csv {
                self.text.out.push(b',');
            }
            self.row(period);
        }
        self.text.out
    }

    fn row(&mut self, period: &SessionRange) {
        let position = self.values.prepare(period);
        for index in 0..self.cells.len() {
            self.text.out.extend_from_slice(&self.labels[index]);
            self.value(self.cells[index], period, position);
        }
        let end: &[u8] = match (self.text.is_csv, self.cells.is_empty()) {
            (true, _) => b"\r\n",
            (false, true) => b"{}",
            (false, false) => b"}",
        };
        self.text.out.extend_from_slice(end);
    }

    fn value(&mut self, cell: Cell, period: &SessionRange, position: usize) {
        let (values, text) = (&self.values, &mut self.text);
        let (adjusted, last) = (values.adjusted, period.end - 1);
        let bars = adjusted.bars;
        let sessions = |column: &'a [i64]| {
            period.clone().filter_map(move |session| values.asked(session, column[session]))
        };
        match cell {
            Cell::Symbol => text.word(Some(self.whose.symbol)),
            Cell::Currency => text.word(self.whose.currency),
            Cell::Date => text.date(bars.day[last]),
            Cell::Open => text.price(sessions(&bars.open).next()),
            Cell::High => text.price(sessions(&bars.high).max()),
            Cell::Low => text.price(sessions(&bars.low).min()),
            Cell::Close => text.price(values.asked(last, bars.close[last])),
            Cell::Volume => text.count(adjusted.volume(period)),
            Cell::Vwap => text.price(match period.len() {
                1 => values.asked(period.start, bars.vwap[period.start]),
                _ => adjusted.vwap(period).map(micros),
            }),
            Cell::TradeCount => text.count(adjusted.trade_count(period)),
            Cell::RawClose => text.price(values.on(last, bars.close[last], PriceBasis::Raw)),
            Cell::AdjClose => text.price(values.on(last, bars.close[last], PriceBasis::All)),
            Cell::SplitFactor => text.digits(values.step(position).map_or("", |step| &step.split_factor)),
            Cell::TotalFactor => text.digits(values.step(position).map_or("", |step| &step.total_factor)),
            Cell::Dividend => text.decimal(values.event(period).0),
            Cell::SplitRatio => text.decimal(values.event(period).1),
            Cell::Change => text.price(values.change(period)),
            Cell::ChangePercent => self.change_percent(period),
        }
    }

    fn change_percent(&mut self, period: &SessionRange) {
        let before = period.start.checked_sub(1);
        match before.and_then(|before| self.values.difference(period.end - 1, before)) {
            Some((difference, previous)) if previous != 0 => {
                self.text.scaled(divided(i128::from(difference) * 1_000_000, i128::from(previous)), 4);
            }
            _ => {
                let percent = self.values.adjusted.change(period).and_then(|(_, percent)| percent);
                self.text.decimal(percent.map(|percent| round(percent, 4)));
            }
        }
    }
}
