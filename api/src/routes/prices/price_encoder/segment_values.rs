//! Values of price points. A segment is the period between two consecutive ex-dates; its sessions have the same factors.

use market::bars::MISSING;
use market::day::day_number;
use market::price::{AdjustedBars, Micros, PriceBasis, PriceMultiplier, SessionRange, micros};
use rust_decimal::Decimal;

/// Factors and multipliers that all sessions between two ex-dates share.
#[derive(Clone)]
pub(super) struct SegmentFactors {
    pub(super) split_factor: String,
    pub(super) total_factor: String,
    /// Multipliers to the raw basis, by the scale (decimal places) of the stored price.
    raw: [Option<PriceMultiplier>; 19],
    /// Multipliers to the fully adjusted basis, by scale.
    all: [Option<PriceMultiplier>; 19],
    /// Multipliers to the requested basis, by scale.
    asked: [Option<PriceMultiplier>; 19],
}

/// Computes price points, and caches the values that the sessions of a segment share.
pub(super) struct SegmentValues<'a> {
    pub(super) adjusted: &'a AdjustedBars<'a>,
    segments: Vec<Option<SegmentFactors>>,
    /// Last prepared session, and the index of its segment.
    current: (usize, usize),
    /// Ex-dates, in order.
    ex_days: Vec<i32>,
}

impl<'a> SegmentValues<'a> {
    /// Creates an instance without prepared steps.
    pub(super) fn new(adjusted: &'a AdjustedBars<'a>) -> Self {
        let mut ex_days: Vec<i32> =
            adjusted.factors.iter().map(|factor| day_number(factor.ex_date)).collect();
        ex_days.sort_unstable();
        let segments = vec![None; adjusted.cumulative.len()];
        Self { adjusted, segments, current: (usize::MAX, 0), ex_days }
    }

    /// Cached factors of a segment; `None` if no session of the segment is prepared.
    pub(super) fn segment(&self, position: usize) -> Option<&SegmentFactors> {
        self.segments.get(position)?.as_ref()
    }

    /// Prepares the segments of all sessions of a period. Returns the index of the last session's segment.
    pub(super) fn prepare(&mut self, period: &SessionRange) -> usize {
        let bars = self.adjusted.bars;
        let mut position = 0;
        for session in period.clone() {
            position = self.adjusted.cumulative.position(bars.day[session]);
            let scale = usize::from(bars.scale[session]);
            let cumulative = self.adjusted.cumulative.at(position);
            let prepared = self.segments[position].get_or_insert_with(|| SegmentFactors {
                split_factor: cumulative.factor(PriceBasis::SPLIT).to_string(),
                total_factor: cumulative.factor(PriceBasis::ALL).to_string(),
                raw: [const { None }; 19],
                all: [const { None }; 19],
                asked: [const { None }; 19],
            });
            if prepared.raw[scale].is_none() {
                let multiplier =
                    |basis| Some(PriceMultiplier::new(cumulative, basis, u32::from(bars.scale[session])));
                prepared.raw[scale] = multiplier(PriceBasis::RAW);
                prepared.all[scale] = multiplier(PriceBasis::ALL);
                prepared.asked[scale] = multiplier(self.adjusted.basis);
            }
        }
        self.current = (period.end - 1, position);
        position
    }

    /// Raw value of a session, converted to the requested basis.
    pub(super) fn on_requested_basis(&self, session: usize, value: i64) -> Option<Micros> {
        self.on_basis(session, value, self.adjusted.basis)
    }

    /// Raw value of a session, converted to a basis.
    pub(super) fn on_basis(&self, session: usize, value: i64, basis: PriceBasis) -> Option<Micros> {
        if value == MISSING {
            return None;
        }
        let bars = self.adjusted.bars;
        let position = self.position(session);
        let cumulative = self.adjusted.cumulative.at(position);
        let scale = usize::from(bars.scale[session]);
        let prepared = self.segments[position].as_ref();
        let multiplier = prepared.and_then(|prepared| match basis {
            _ if basis == self.adjusted.basis => prepared.asked[scale].as_ref(),
            _ if basis == PriceBasis::RAW => prepared.raw[scale].as_ref(),
            _ => prepared.all[scale].as_ref(),
        });
        match multiplier {
            Some(multiplier) => Some(multiplier.micros(cumulative, value)),
            None => self.adjusted.exact(session, value, basis).map(micros),
        }
    }

    fn position(&self, session: usize) -> usize {
        if session == self.current.0 {
            return self.current.1;
        }
        self.adjusted.cumulative.position(self.adjusted.bars.day[session])
    }

    /// Change of the close since the session before the period. It is computed from the raw closes if both have the
    /// same segment and scale.
    pub(super) fn change(&self, period: &SessionRange) -> Option<Micros> {
        let before = period.start.checked_sub(1)?;
        let difference = self.difference(period.end - 1, before);
        match difference {
            Some((difference, _)) => self.on_requested_basis(period.end - 1, difference),
            None => self.adjusted.change(period).map(|(change, _)| micros(change)),
        }
    }

    /// Difference of two raw closes, and the earlier close. `None` if their segments or scales differ.
    pub(super) fn difference(&self, last: usize, before: usize) -> Option<(i64, i64)> {
        let bars = self.adjusted.bars;
        let same_segment =
            self.adjusted.basis == PriceBasis::RAW || self.position(last) == self.position(before);
        if !same_segment || bars.scale[last] != bars.scale[before] {
            return None;
        }
        Some((bars.close[last].checked_sub(bars.close[before])?, bars.close[before]))
    }

    /// Cash per share, and new shares per old share, of a period.
    pub(super) fn cash_and_split_ratio(&self, period: &SessionRange) -> (Option<Decimal>, Option<Decimal>) {
        let bars = self.adjusted.bars;
        let after = period.start.checked_sub(1).map_or(bars.day[0] - 1, |before| bars.day[before]);
        let last = bars.day[period.end - 1];
        let next = self.ex_days.partition_point(|day| *day <= after);
        let any = self.ex_days.get(next).is_some_and(|day| *day <= last);
        if any { self.adjusted.events(period) } else { (None, None) }
    }
}
