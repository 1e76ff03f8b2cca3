//! Price encoder. It reads the columns of stored prices and writes price points as JSON or CSV. It creates no struct
//! per price point, because structs and serde would take several times as long.
//!
//! Invariant: the bytes equal the bytes that serde writes for a [`PricePoint`](super::PricePoint) whose values are
//! computed with decimals, for every basis and interval.

use super::adjusted_bars::{AdjustedBars, SessionRange};
use super::point_values::{PointValues, Segment, Segments, price};
use super::value_writer::{PriceFormat, ValueWriter};
use crate::text_enum;

/// Number of bytes that are reserved in the buffer for each price point. Few price points need more.
const POINT: usize = 352;
/// Number of bytes that are reserved in the buffer for the end of a response (the part after the last row).
const META: usize = 2048;

text_enum! {
    /// Column of a price row: a label of the security, or a value of the price point.
    pub enum PriceColumn {
        Symbol = "symbol", Exchange = "exchange", Currency = "currency", PreviousClose = "previous_close",
        AgeSessions = "age_sessions", Date = "date", Open = "open", High = "high", Low = "low", Close = "close",
        Volume = "volume", Vwap = "vwap", TradeCount = "trade_count", RawClose = "raw_close", AdjClose = "adj_close",
        SplitFactor = "split_factor", TotalFactor = "total_factor", Dividend = "dividend", SplitRatio = "split_ratio",
        Change = "change", ChangePercent = "change_percent",
    }
}

/// Values of a security that are the same in every row.
#[derive(Debug, Clone, Copy)]
pub struct RowLabels<'a> {
    /// Canonical ticker.
    pub symbol: &'a str,
    /// Primary exchange, already encoded as a JSON value or as a CSV cell.
    pub exchange: &'a [u8],
    /// ISO 4217 currency of every price.
    pub currency: Option<&'a str>,
    /// Number of sessions since the newest bar; `None` if unknown.
    pub age_sessions: Option<i32>,
}

/// Writer of price rows with certain columns in a certain format.
#[derive(Debug)]
pub struct PriceEncoder {
    /// Columns, each with the text before its value: the separator and, in JSON, the column name.
    columns: Vec<(Label, PriceColumn)>,
    format: PriceFormat,
}

impl PriceEncoder {
    /// Creates a writer of rows with these columns, in this order.
    pub fn new(columns: &[PriceColumn], format: PriceFormat) -> Self {
        let column = |(index, column): (usize, &PriceColumn)| {
            let label = match (format, index) {
                (PriceFormat::Csv, 0) => String::new(),
                (PriceFormat::Csv, _) => ",".to_owned(),
                (PriceFormat::Json { .. }, 0) => format!("{{\"{column}\":"),
                (PriceFormat::Json { .. }, _) => format!(",\"{column}\":"),
            };
            (Label::new(&label), *column)
        };
        Self { columns: columns.iter().enumerate().map(column).collect(), format }
    }

    /// Appends one row for each period. The periods must be consecutive, in ascending or descending order.
    pub fn encode(
        &self,
        adjusted: &AdjustedBars<'_>,
        labels: RowLabels<'_>,
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
        let mut text = ValueWriter::new(out, self.format);
        for (index, period) in periods.iter().enumerate() {
            if index > 0 && !text.is_csv {
                text.out.push(b',');
            }
            let row_start = text.out.len();
            segment = segments.find(segment, period.end - 1);
            for (label, column) in &self.columns {
                label.write(text.out);
                write_value(*column, &values, labels, period, segment, &mut text);
            }
            match self.format {
                PriceFormat::Json { .. } if self.columns.is_empty() => text.out.extend_from_slice(b"{}"),
                PriceFormat::Json { .. } => text.out.push(b'}'),
                PriceFormat::Csv => text.end_record(row_start),
            }
        }
    }
}

/// Writes the value of one column for a period. `segment` must be the segment of the period's last session.
fn write_value(
    column: PriceColumn,
    values: &PointValues<'_>,
    labels: RowLabels<'_>,
    period: &SessionRange,
    segment: &Segment<'_>,
    text: &mut ValueWriter<'_>,
) {
    let (bars, last) = (values.adjusted.bars, period.end - 1);
    match column {
        PriceColumn::Symbol => text.write_code(Some(labels.symbol)),
        PriceColumn::Exchange => text.out.extend_from_slice(labels.exchange),
        PriceColumn::Currency => text.write_code(labels.currency),
        PriceColumn::PreviousClose => text.write_price(values.previous_close(period, segment)),
        PriceColumn::AgeSessions => text.write_count(labels.age_sessions.map(i64::from)),
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

/// Text before the value of a column: the separator and, in JSON, the column name.
#[derive(Debug)]
struct Label {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl Label {
    /// Maximum length of a label, in bytes. `write` copies this number of bytes for every label and then removes the
    /// excess, because a copy of constant size is fast.
    const MAX: usize = 32;

    fn new(text: &str) -> Self {
        debug_assert!(text.len() <= Self::MAX, "the label {text} is too long");
        let mut bytes = [0; Self::MAX];
        bytes.iter_mut().zip(text.bytes()).for_each(|(byte, of_text)| *byte = of_text);
        Self { bytes, length: text.len() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}
