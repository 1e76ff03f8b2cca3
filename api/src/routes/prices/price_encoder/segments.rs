//! Segments: consecutive sessions with the same adjustment factors and the same price scale.

use std::ops::Range;

use market::price::{AdjustedBars, CumulativeFactor, PriceBasis, PriceMultiplier};

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

    /// Finds the segment of a session. The search is fast if `near` is this segment.
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
