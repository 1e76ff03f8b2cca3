//! Values of price points. They are computed with scaled integers where possible, because decimal arithmetic is slower.
//! For example, the change from one close to the next needs decimals only if the two sessions have different factors or
//! scales.

use std::ops::Range;

use market::bars::MISSING;
use market::day::day_number;
use market::decimal::round;
use market::price::{AdjustedBars, Micros, PriceMultiplier, SessionRange, micros};
use rust_decimal::Decimal;

use super::digits::divide_rounded;
use super::segments::{Segment, Segments};

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
