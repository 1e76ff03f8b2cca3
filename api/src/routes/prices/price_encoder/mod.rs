//! Price encoder. It writes price points as JSON or CSV directly from the columns. For ten years of daily prices,
//! structs and serde take several times as long.
//!
//! Invariant: the bytes equal the bytes that serde writes for [`market::price::PricePoint`], for every basis and
//! interval.

mod column;
mod digits;
mod point_values;
mod segments;
#[cfg(test)]
mod tests;
mod value_writer;

use market::price::{AdjustedBars, SessionRange};

use crate::parameters::{Output, ResponseFormat};
use column::{Label, PriceColumn};
use point_values::{PointValues, price};
use segments::{Segment, Segments};
use value_writer::ValueWriter;

/// Usual maximum size of an encoded price point, in bytes.
const POINT: usize = 352;
/// Usual maximum size of the end of a response (the part after the last row), in bytes.
const META: usize = 2048;

/// Symbol and currency of a security's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLabels<'a> {
    pub(super) symbol: &'a str,
    pub(super) currency: Option<&'a str>,
}

/// Writer of price points with the columns and in the format that a request asks for.
#[derive(Debug)]
pub(super) struct PriceEncoder {
    /// Columns, each with the text before its value: the separator and, in JSON, the column name.
    columns: Vec<(Label, PriceColumn)>,
    /// Bytes after the last value of a row.
    end: &'static [u8],
    is_csv: bool,
    /// Quotation mark around decimals if they are JSON strings; `None` for JSON numbers and CSV.
    quote: Option<u8>,
}

impl PriceEncoder {
    pub(super) fn new(output: &Output) -> Self {
        let names = output.fields.as_deref().unwrap_or(output.columns);
        let is_csv = output.format == ResponseFormat::Csv;
        let column = |(index, name): (usize, &&'static str)| {
            let separator = if index == 0 { "{" } else { "," };
            let label = match (is_csv, index) {
                (true, 0) => String::new(),
                (true, _) => ",".to_owned(),
                (false, _) => format!("{separator}\"{name}\":"),
            };
            (Label::new(&label), PriceColumn::from_name(name))
        };
        Self {
            columns: names.iter().enumerate().map(column).collect(),
            end: match (is_csv, names.is_empty()) {
                (true, _) => b"\r\n",
                (false, true) => b"{}",
                (false, false) => b"}",
            },
            is_csv,
            quote: (output.text_decimals && !is_csv).then_some(b'"'),
        }
    }

    /// Appends one price point for each period, as an item of a JSON array or as a CSV record. The periods must be
    /// consecutive, in ascending or descending order.
    pub(super) fn encode(
        &self,
        adjusted: &AdjustedBars<'_>,
        row_labels: RowLabels<'_>,
        periods: &[SessionRange],
        out: &mut Vec<u8>,
    ) {
        let (Some(first), Some(last)) = (periods.first(), periods.last()) else { return };
        out.reserve(periods.len() * POINT + META);
        // A change needs the close before the first period.
        let start = first.start.min(last.start).saturating_sub(1);
        let sessions = start..first.end.max(last.end);
        let segments = Segments::new(adjusted, sessions.clone());
        let values = PointValues::new(adjusted, &segments, sessions);
        let Some(mut segment) = segments.first() else { return };
        let mut text = ValueWriter { out, quote: self.quote, is_csv: self.is_csv };
        for (index, period) in periods.iter().enumerate() {
            if index > 0 && !self.is_csv {
                text.out.push(b',');
            }
            segment = segments.find(segment, period.end - 1);
            for (label, column) in &self.columns {
                label.write(text.out);
                write_value(*column, &values, row_labels, period, segment, &mut text);
            }
            text.out.extend_from_slice(self.end);
        }
    }
}

/// Writes the value of one column for a period. `segment` must be the segment of the period's last session.
fn write_value(
    column: PriceColumn,
    values: &PointValues<'_>,
    row_labels: RowLabels<'_>,
    period: &SessionRange,
    segment: &Segment<'_>,
    text: &mut ValueWriter<'_>,
) {
    let (bars, last) = (values.adjusted.bars, period.end - 1);
    match column {
        PriceColumn::Symbol => text.write_code(Some(row_labels.symbol)),
        PriceColumn::Currency => text.write_code(row_labels.currency),
        PriceColumn::Date => text.write_date(bars.day[last]),
        PriceColumn::Open => text.write_price(values.prices(&bars.open, period, segment).next()),
        PriceColumn::High => text.write_price(values.prices(&bars.high, period, segment).max()),
        PriceColumn::Low => text.write_price(values.prices(&bars.low, period, segment).min()),
        PriceColumn::Close => text.write_price(price(bars.close[last], &segment.requested)),
        PriceColumn::Volume => text.write_count(values.volume(period, segment)),
        PriceColumn::Vwap => text.write_price(values.vwap(period, segment)),
        PriceColumn::TradeCount => text.write_count(values.adjusted.trade_count(period)),
        PriceColumn::RawClose => text.write_price(price(bars.close[last], &segment.raw)),
        PriceColumn::AdjClose => text.write_price(price(bars.close[last], &segment.all)),
        PriceColumn::SplitFactor => text.write_decimal_text(&segment.split_factor),
        PriceColumn::TotalFactor => text.write_decimal_text(&segment.total_factor),
        PriceColumn::Dividend => text.write_decimal(values.events(period).0),
        PriceColumn::SplitRatio => text.write_decimal(values.events(period).1),
        PriceColumn::Change => text.write_price(values.change(period, segment)),
        PriceColumn::ChangePercent => match values.change_percent(period, segment) {
            Some(percent) => text.write_scaled::<4>(percent),
            None => text.write_decimal(values.exact_change_percent(period)),
        },
    }
}
