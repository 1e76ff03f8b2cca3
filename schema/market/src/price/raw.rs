//! Raw bars of one security as columns over all years.

use crate::bars::{Bars, BarsError, MISSING};

/// Raw bars by day. Prices are integers on the scale of their bar; unknown values are [`MISSING`].
#[derive(Debug, Default)]
pub struct RawBars {
    /// Sessions, as day numbers, ascending.
    pub day: Vec<i32>,
    /// Decimal places of the prices.
    pub scale: Vec<u8>,
    /// Open, scaled.
    pub open: Vec<i64>,
    /// High, scaled.
    pub high: Vec<i64>,
    /// Low, scaled.
    pub low: Vec<i64>,
    /// Close, scaled.
    pub close: Vec<i64>,
    /// Shares traded.
    pub volume: Vec<i64>,
    /// Volume-weighted average price, scaled.
    pub vwap: Vec<i64>,
    /// Number of trades of each bar.
    pub trade_count: Vec<i64>,
}

impl RawBars {
    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.day.len()
    }

    /// True if the number of sessions is 0.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty()
    }

    /// Appends the bars of a later year.
    pub fn append(&mut self, mut bars: Bars) -> Result<(), BarsError> {
        let count = self.len() + bars.len();
        let scale = u8::try_from(bars.scale).map_err(|_| BarsError::ScaleOverflow)?;
        self.scale.resize(count, scale);
        self.day.append(&mut bars.day);
        self.open.extend(bars.open.iter());
        self.high.extend(bars.high.iter());
        self.low.extend(bars.low.iter());
        self.close.append(&mut bars.close);
        self.volume.extend(bars.volume.iter());
        self.vwap.append(&mut bars.vwap);
        self.vwap.resize(count, MISSING);
        self.trade_count.append(&mut bars.trade_count);
        self.trade_count.resize(count, MISSING);
        Ok(())
    }
}
