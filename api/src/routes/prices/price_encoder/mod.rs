//! Price encoder. It writes price points as JSON or CSV directly from the columns. For ten years of daily prices,
//! structs and serde take five times as long.
//!
//! Invariant: the bytes equal the bytes that serde writes for [`market::price::PricePoint`], for every basis and
//! interval.

mod column;
mod digits;
mod segment_values;
#[cfg(test)]
mod tests;
mod value_writer;

use market::decimal::round;
use market::price::{AdjustedBars, PriceBasis, SessionRange, micros};

use crate::parameters::{Output, ResponseFormat};
use column::PriceColumn;
use digits::divide_rounded;
use segment_values::SegmentValues;
use value_writer::ValueWriter;

/// Usual maximum size of an encoded price point, in bytes.
const POINT: usize = 320;

/// Symbol and currency of a security's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLabels<'a> {
    pub(super) symbol: &'a str,
    pub(super) currency: Option<&'a str>,
}

fn columns(output: &Output) -> &[&'static str] {
    output.fields.as_deref().unwrap_or(output.columns)
}

/// Writer of price points.
pub(super) struct PriceEncoder<'a> {
    row_labels: RowLabels<'a>,
    cells: Vec<PriceColumn>,
    /// Bytes before the value of each column: the separator and, in JSON, the name.
    labels: Vec<Vec<u8>>,
    values: SegmentValues<'a>,
    text: ValueWriter,
}

impl<'a> PriceEncoder<'a> {
    /// Creates a writer with room for `points` points.
    pub(super) fn new(
        adjusted: &'a AdjustedBars<'a>,
        row_labels: RowLabels<'a>,
        output: &Output,
        points: usize,
    ) -> Self {
        let columns = columns(output);
        let is_csv = output.format == ResponseFormat::Csv;
        let label = |(index, column): (usize, &&str)| match (is_csv, index) {
            (true, 0) => Vec::new(),
            (true, _) => b",".to_vec(),
            (false, 0) => format!("{{\"{column}\":").into_bytes(),
            (false, _) => format!(",\"{column}\":").into_bytes(),
        };
        Self {
            row_labels,
            cells: columns.iter().map(|column| PriceColumn::from_name(column)).collect(),
            labels: columns.iter().enumerate().map(label).collect(),
            values: SegmentValues::new(adjusted),
            text: ValueWriter {
                out: Vec::with_capacity(points * POINT + 512),
                quote: (output.text_decimals && !is_csv).then_some(b'"'),
                is_csv,
            },
        }
    }

    /// Encodes these periods, in order, as items of a JSON array or as CSV records.
    pub(super) fn encode_rows<'p>(mut self, periods: impl Iterator<Item = &'p SessionRange>) -> Vec<u8> {
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

    fn value(&mut self, cell: PriceColumn, period: &SessionRange, position: usize) {
        let (values, text) = (&self.values, &mut self.text);
        let (adjusted, last) = (values.adjusted, period.end - 1);
        let bars = adjusted.bars;
        let sessions = |column: &'a [i64]| {
            period.clone().filter_map(move |session| values.on_requested_basis(session, column[session]))
        };
        match cell {
            PriceColumn::Symbol => text.write_code(Some(self.row_labels.symbol)),
            PriceColumn::Currency => text.write_code(self.row_labels.currency),
            PriceColumn::Date => text.write_date(bars.day[last]),
            PriceColumn::Open => text.write_price(sessions(&bars.open).next()),
            PriceColumn::High => text.write_price(sessions(&bars.high).max()),
            PriceColumn::Low => text.write_price(sessions(&bars.low).min()),
            PriceColumn::Close => text.write_price(values.on_requested_basis(last, bars.close[last])),
            PriceColumn::Volume => text.write_count(adjusted.volume(period)),
            PriceColumn::Vwap => text.write_price(match period.len() {
                1 => values.on_requested_basis(period.start, bars.vwap[period.start]),
                _ => adjusted.vwap(period).map(micros),
            }),
            PriceColumn::TradeCount => text.write_count(adjusted.trade_count(period)),
            PriceColumn::RawClose => {
                text.write_price(values.on_basis(last, bars.close[last], PriceBasis::RAW))
            }
            PriceColumn::AdjClose => {
                text.write_price(values.on_basis(last, bars.close[last], PriceBasis::ALL))
            }
            PriceColumn::SplitFactor => {
                text.write_decimal_text(values.segment(position).map_or("", |segment| &segment.split_factor))
            }
            PriceColumn::TotalFactor => {
                text.write_decimal_text(values.segment(position).map_or("", |segment| &segment.total_factor))
            }
            PriceColumn::Dividend => text.write_decimal(values.cash_and_split_ratio(period).0),
            PriceColumn::SplitRatio => text.write_decimal(values.cash_and_split_ratio(period).1),
            PriceColumn::Change => text.write_price(values.change(period)),
            PriceColumn::ChangePercent => self.change_percent(period),
        }
    }

    fn change_percent(&mut self, period: &SessionRange) {
        let before = period.start.checked_sub(1);
        match before.and_then(|before| self.values.difference(period.end - 1, before)) {
            Some((difference, previous)) if previous != 0 => {
                self.text.write_scaled(
                    divide_rounded(i128::from(difference) * 1_000_000, i128::from(previous)),
                    4,
                );
            }
            _ => {
                let percent = self.values.adjusted.change(period).and_then(|(_, percent)| percent);
                self.text.write_decimal(percent.map(|percent| round(percent, 4)));
            }
        }
    }
}
