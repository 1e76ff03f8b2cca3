//! Values of price points. They are computed with scaled integers where possible, because decimal arithmetic is slower.
//! For example, the change from one close to the next needs decimals only if the two sessions have different factors or
//! scales.
//!
//! Price point: the values of one price row and their meaning. [`PriceEncoder`](super::PriceEncoder) writes them.

use std::ops::Range;

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::adjusted_bars::{AdjustedBars, SessionRange};
use super::cumulative::{CumulativeFactor, PriceBasis};
use super::multiplier::{Micros, PriceMultiplier, micros};
use super::value_writer::divide_rounded;
use crate::bars::MISSING;
use crate::day::day_number;
use crate::decimal::{ExactDecimal, round};

/// Consecutive sessions, with the factors that apply to all of them.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub(super) sessions: Range<usize>,
    pub(super) factor: &'a CumulativeFactor,
    /// Multiplier that converts stored prices to the requested price basis.
    pub(super) requested: PriceMultiplier,
    /// Multiplier that converts stored prices to raw prices. It changes only the number of decimal places.
    pub(super) raw: PriceMultiplier,
    /// Multiplier that converts stored prices to fully adjusted prices.
    pub(super) all: PriceMultiplier,
    pub(super) split_factor: String,
    pub(super) total_factor: String,
}

/// Segments of a range of sessions, in order.
#[derive(Debug)]
pub(super) struct Segments<'a>(Vec<Segment<'a>>);

impl<'a> Segments<'a> {
    /// Divides a range of sessions into segments.
    pub(super) fn new(adjusted: &'a AdjustedBars<'_>, sessions: Range<usize>) -> Self {
        let bars = adjusted.bars;
        let mut segments = Vec::new();
        let mut start = sessions.start;
        while start < sessions.end {
            let step = adjusted.cumulative.position(bars.day[start]);
            let has_step = |day: &i32| adjusted.cumulative.position(*day) == step;
            let same_step = bars.day[start..sessions.end].partition_point(has_step);
            let scale = bars.scale[start];
            let scales = &bars.scale[start..start + same_step];
            let count = scales.iter().position(|other| *other != scale).unwrap_or(same_step);
            segments.push(Segment::new(adjusted, start..start + count, step));
            start += count;
        }
        Self(segments)
    }

    /// Finds the segment of a session. The function is fastest if the session is in the segment `near`.
    pub(super) fn find<'s>(&'s self, near: &'s Segment<'a>, session: usize) -> &'s Segment<'a> {
        if near.sessions.contains(&session) {
            return near;
        }
        let position = self.0.partition_point(|segment| segment.sessions.end <= session);
        &self.0[position]
    }

    /// First segment; `None` without sessions.
    pub(super) fn first(&self) -> Option<&Segment<'a>> {
        self.0.first()
    }
}

impl<'a> Segment<'a> {
    fn new(adjusted: &'a AdjustedBars<'_>, sessions: Range<usize>, step: usize) -> Self {
        let factor = adjusted.cumulative.at(step);
        let scale = adjusted.bars.scale[sessions.start].into();
        Self {
            sessions,
            factor,
            requested: PriceMultiplier::new(factor, adjusted.basis, scale),
            raw: PriceMultiplier::new(factor, PriceBasis::RAW, scale),
            all: PriceMultiplier::new(factor, PriceBasis::ALL, scale),
            split_factor: factor.factor(PriceBasis::SPLIT).to_string(),
            total_factor: factor.factor(PriceBasis::ALL).to_string(),
        }
    }

    /// True if prices of both segments have the same scale, and the same factor converts them to the requested price
    /// basis.
    pub(super) fn has_requested_basis_of(&self, other: &Segment<'_>) -> bool {
        self.sessions == other.sessions || self.requested == other.requested
    }
}

/// Values of the price points of one security. A segment is a range of sessions with the same adjustment factors and
/// price scale. In all methods, the parameter `segment` is the segment of the last session of the period.
pub(super) struct PointValues<'a> {
    pub(super) adjusted: &'a AdjustedBars<'a>,
    segments: &'a Segments<'a>,
    /// Index of the session to which the first flag in `has_event` belongs.
    start: usize,
    /// One flag per session, true if the session has an ex-date. An ex-date on a day without a session counts for the
    /// next session.
    has_event: Vec<bool>,
}

impl<'a> PointValues<'a> {
    pub(super) fn new(
        adjusted: &'a AdjustedBars<'a>,
        segments: &'a Segments<'a>,
        sessions: Range<usize>,
    ) -> Self {
        let start = sessions.start;
        let days = &adjusted.bars.day[sessions];
        let mut has_event = vec![false; days.len()];
        for factor in adjusted.factors {
            let ex_day = day_number(factor.ex_date);
            if let Some(has_event) = has_event.get_mut(days.partition_point(|day| *day < ex_day)) {
                *has_event = true;
            }
        }
        Self { adjusted, segments, start, has_event }
    }

    /// Prices of one column (for example the highs) in a period, converted to the requested price basis. Missing prices
    /// are left out.
    pub(super) fn prices(
        &self,
        column: &[i64],
        period: &SessionRange,
        segment: &Segment<'a>,
    ) -> impl Iterator<Item = Micros> {
        let known = move |session| price(column[session], &self.segments.find(segment, session).requested);
        period.clone().filter_map(known)
    }

    pub(super) fn volume(&self, period: &SessionRange, segment: &Segment<'a>) -> Option<i64> {
        if period.len() > 1 {
            return self.adjusted.volume(period);
        }
        match (self.adjusted.bars.volume[period.start], self.adjusted.basis.split) {
            (MISSING, _) => None,
            (volume, true) => segment.factor.adjusted_volume(volume),
            (volume, false) => Some(volume),
        }
    }

    pub(super) fn vwap(&self, period: &SessionRange, segment: &Segment<'a>) -> Option<Micros> {
        if period.len() > 1 {
            return self.adjusted.vwap(period).map(micros);
        }
        price(self.adjusted.bars.vwap[period.start], &segment.requested)
    }

    /// Events of a period. The first value is the sum of cash dividends per share. The second value is the number of
    /// new shares per old share in splits. A value is `None` if the period has no such event.
    pub(super) fn events(&self, period: &SessionRange) -> (Option<Decimal>, Option<Decimal>) {
        let has_event = &self.has_event[period.start - self.start..period.end - self.start];
        if has_event.contains(&true) { self.adjusted.events(period) } else { (None, None) }
    }

    /// Close of the session before the period.
    pub(super) fn previous_close(&self, period: &SessionRange, segment: &Segment<'a>) -> Option<Micros> {
        let before = period.start.checked_sub(1)?;
        price(self.adjusted.bars.close[before], &self.segments.find(segment, before).requested)
    }

    /// Change of the close since the session before the period.
    pub(super) fn change(&self, period: &SessionRange, segment: &Segment<'a>) -> Option<Micros> {
        match self.raw_change(period, segment) {
            Some((change, _)) => price(change, &segment.requested),
            None => self.adjusted.change(period).map(|(change, _)| micros(change)),
        }
    }

    /// Change of the close since the session before the period, in units of 0.0001 percent. `None` if the result needs
    /// decimal arithmetic or does not exist.
    pub(super) fn change_percent(&self, period: &SessionRange, segment: &Segment<'a>) -> Option<i128> {
        let (change, previous) = self.raw_change(period, segment)?;
        (previous != 0).then(|| divide_rounded(i128::from(change) * 1_000_000, i128::from(previous)))
    }

    /// Change of the close since the session before the period, in percent. It is computed with decimals.
    pub(super) fn exact_change_percent(&self, period: &SessionRange) -> Option<Decimal> {
        let (_, percent) = self.adjusted.change(period)?;
        percent.map(|percent| round(percent, 4))
    }

    /// Two raw values: the change of the close since the session before the period, and the close of that session.
    /// `None` if that session does not exist, or has another price factor or scale.
    fn raw_change(&self, period: &SessionRange, segment: &Segment<'a>) -> Option<(i64, i64)> {
        let before = period.start.checked_sub(1)?;
        if !segment.has_requested_basis_of(self.segments.find(segment, before)) {
            return None;
        }
        let closes = &self.adjusted.bars.close;
        Some((closes[period.end - 1].checked_sub(closes[before])?, closes[before]))
    }
}

/// Converts a raw price to the price basis of `multiplier`, in millionths; `None` for a missing price.
pub(super) fn price(value: i64, multiplier: &PriceMultiplier) -> Option<Micros> {
    (value != MISSING).then(|| multiplier.micros(value))
}

/// A price bar of one session, or of a longer period such as a week. Open, high, low, close, volume, vwap and
/// change have the requested adjustment.
#[derive(Debug, Serialize, ToSchema)]
pub struct PricePoint {
    /// Day of the session. For a longer period, the day of its last session.
    pub date: NaiveDate,
    /// First price of the period.
    pub open: Option<ExactDecimal>,
    /// Highest price of the period.
    pub high: Option<ExactDecimal>,
    /// Lowest price of the period.
    pub low: Option<ExactDecimal>,
    /// Last price of the period.
    pub close: ExactDecimal,
    /// Shares traded in the period.
    pub volume: Option<i64>,
    /// Volume-weighted average price of the period.
    pub vwap: Option<ExactDecimal>,
    /// Number of trades in the period.
    pub trade_count: Option<i64>,
    /// Last price of the period as traded.
    pub raw_close: ExactDecimal,
    /// Last price of the period, adjusted for splits and dividends (R11).
    pub adj_close: ExactDecimal,
    /// Multiplier that adjusts raw_close for later splits and for later price-only actions, such as a spin-off
    /// reported as a ratio. Dividends are left out.
    pub split_factor: ExactDecimal,
    /// Multiplier that converts raw_close to adj_close.
    pub total_factor: ExactDecimal,
    /// Cash per share, as declared: the sum of the dividends with an ex-date in the period. Null without such a
    /// dividend.
    pub dividend: Option<ExactDecimal>,
    /// New shares per old share: the product of the ratios of all splits with an ex-date in the period. Null
    /// without a split.
    pub split_ratio: Option<ExactDecimal>,
    /// Change of the close since the last session before the period.
    pub change: Option<ExactDecimal>,
    /// Change of the close since the last session before the period, percent.
    pub change_percent: Option<ExactDecimal>,
}
