//! Raw bars of one security over all years, as one column per field.

use crate::bars::{Bars, BarsError};

/// Raw bars, ascending by day. Each price is stored as the integer price x 10^scale, with the scale of its bar. An
/// absent value is [`MISSING`](crate::bars::MISSING).
#[derive(Debug, Default)]
pub struct RawBars {
    /// Day number of each session, ascending.
    pub day: Vec<i32>,
    /// Number of decimal places of each bar's prices.
    pub scale: Vec<u8>,
    /// Opening prices x 10^scale.
    pub open: Vec<i64>,
    /// Highest prices x 10^scale.
    pub high: Vec<i64>,
    /// Lowest prices x 10^scale.
    pub low: Vec<i64>,
    /// Closing prices x 10^scale.
    pub close: Vec<i64>,
    /// Shares traded in each session.
    pub volume: Vec<i64>,
    /// Volume-weighted average prices x 10^scale.
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

    /// Appends the bars of a later year. Their scale may differ from the scale of earlier years.
    pub fn append(&mut self, mut bars: Bars) -> Result<(), BarsError> {
        let scale = u8::try_from(bars.scale).map_err(|_| BarsError::ScaleOverflow)?;
        self.scale.resize(self.len() + bars.len(), scale);
        self.day.append(&mut bars.day);
        self.open.extend(bars.open.iter());
        self.high.extend(bars.high.iter());
        self.low.extend(bars.low.iter());
        self.close.append(&mut bars.close);
        self.volume.extend(bars.volume.iter());
        self.vwap.extend(bars.vwap.iter());
        self.trade_count.extend(bars.trade_count.iter());
        Ok(())
    }
}
