//! Payment frequency around each row (R34). A payer may change its frequency, so a search assigns a frequency to each
//! gap between two rows. The search finds the sequence of frequencies with the lowest total cost. It adds these costs:
//! - Fitting gap: a gap of 0.6 to 1.4 periods of its frequency has no cost. With 3 or 6 payments a year, it has a small
//!   cost.
//! - Shorter gap (an extra row): it costs less than a longer gap.
//! - Longer gap (a missing row).
//! - Uneven halves (an interim and a final dividend): two gaps sum to a year, and so do at least 60 % of the adjacent
//!   pairs around them, as in R5. With the frequency semi-annual, each has a small cost.
//! - Irregular gap: any gap fits the frequency irregular. It costs more than uneven halves, but less than a shorter
//!   gap.
//! - Change of the frequency: it costs more than two shorter gaps, and more than one longer gap.
//! - Contradicted tag: the frequency differs from the vendor's tag (the frequency that the vendor states for the row).
//!
//! The number of gaps decides the cost of a contradicted tag:
//! - Four or more gaps: the cost is lower than the cost of an irregular gap. Gaps therefore overrule tags, as in R5.
//! - Fewer gaps: the cost is higher than the cost of an irregular gap. If the gaps contradict the tags, the payer is
//!   therefore irregular. For the frequency irregular itself, the lower cost applies.

use rust_decimal::Decimal;

use super::reading::ScheduleRow;
use crate::metrics::dividends::frequency::{OVERRULING_GAPS, YEAR_DAYS, YEARLY_PAIRS, is_restart};
use crate::metrics::rules::ScheduleRules;

/// Possible frequencies, in order of precedence: irregular, then from the most usual to the least usual frequency. Of
/// several frequencies with equal cost, the first one in this list is chosen.
const STATES: [State; 8] = [
    State::Irregular,
    State::PerYear(4),
    State::PerYear(12),
    State::PerYear(2),
    State::PerYear(1),
    State::PerYear(6),
    State::PerYear(3),
    State::Frequent,
];
/// Longest gap of weekly and biweekly payers, in days. A longer gap does not fit these payers and has a cost.
const FREQUENT_DAYS: i64 = 17;
/// Maximum mean gap of a four-weekly payer, in hundredths of a day. With a larger mean gap, the payer is monthly. The
/// mean does not include gaps around extra and missing rows.
const FOUR_WEEKLY_HUNDREDTHS: i64 = 2870;
/// Number of gaps on each side of a gap, among which pairs that sum to a year are counted.
const GAPS_AROUND: usize = 3;
/// Minimum number of gaps of a four-weekly payer. With fewer gaps, the payer is monthly.
const FOUR_WEEKLY_GAPS: i64 = 6;

// Costs of the search. A change costs more than two short gaps, and more than one long gap.
const SHORT_GAP: u32 = 4;
const LONG_GAP: u32 = 7;
const UNEVEN_HALF: u32 = 1;
const IRREGULAR_GAP: u32 = 2;
/// Cost of a frequency that differs from the vendor's tag.
const OTHER_TAG: u32 = 1;
/// Replacement for [`OTHER_TAG`] if there are too few gaps to overrule tags.
const OTHER_TAG_OF_FEW: u32 = 3;
const CHANGE: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    PerYear(i32),
    /// Payers with 13 and more payments a year, such as weekly, biweekly and four-weekly payers.
    Frequent,
    Irregular,
}

impl State {
    /// Number of payments a year; `None` for irregular payers and for 13 and more payments a year.
    fn per_year(self) -> Option<i32> {
        match self {
            Self::PerYear(per_year) => Some(per_year),
            Self::Frequent | Self::Irregular => None,
        }
    }
}

/// Time span in thousandths of a payment period. A payer with n payments a year has a period of 365.25/n days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeriodThousandths(pub i64);

impl PeriodThousandths {
    /// Converts `days` to thousandths of a payment period, for `per_year` payments a year.
    pub(crate) fn in_days(days: i64, per_year: i32) -> Self {
        Self(days * i64::from(per_year) * 100_000 / 36_525)
    }

    /// True if the span is about one period. `least` is the lower bound in thousandths of a period. The upper bound is
    /// as far above one period.
    pub(crate) fn is_one(self, least: i64) -> bool {
        least <= self.0 && self.0 <= 2000 - least
    }
}

/// Divides rows into segments. A segment is a series of payments without a pause.
pub(super) fn segments(rows: &[ScheduleRow]) -> impl Iterator<Item = &[ScheduleRow]> {
    rows.chunk_by(|a, b| !is_restart(a.ex_date, b.ex_date))
}

/// Number of payments a year around each row; `None` for irregular payers and for 13 or more payments a year.
pub(crate) fn local_frequencies(rows: &[ScheduleRow], rules: &ScheduleRules) -> Vec<Option<i32>> {
    segments(rows).flat_map(|segment| segment_frequencies(segment, rules)).collect()
}

/// Number of payments a year around each row of a segment, as in [`local_frequencies`].
pub(super) fn segment_frequencies(rows: &[ScheduleRow], rules: &ScheduleRules) -> Vec<Option<i32>> {
    let gaps = gap_states(rows, rules);
    (0..rows.len()).map(|index| of_row(rows, &gaps, index)).collect()
}

/// Finds the frequency of each gap between consecutive rows. No gap may be so long that the payments have restarted.
fn gap_states(rows: &[ScheduleRow], rules: &ScheduleRules) -> Vec<State> {
    let gaps: Vec<i64> = rows.windows(2).map(|pair| (pair[1].ex_date - pair[0].ex_date).num_days()).collect();
    // Most payers keep one frequency. If a frequency has no cost at all, the search is not needed.
    let explains_all = |state: &State| {
        gaps.iter().all(|gap| gap_cost(*state, *gap, false, rules) == 0)
            && rows.iter().all(|row| tag_cost(*state, row, OTHER_TAG) == 0)
    };
    let mut states = match STATES.into_iter().find(explains_all) {
        Some(state) => vec![state; gaps.len()],
        None => cheapest_states(rows, &gaps, rules),
    };
    drop_four_weekly(&mut states, &gaps, rules);
    states
}

/// Finds the sequence of frequencies with the lowest total cost. Returns the frequency of each gap in this sequence.
fn cheapest_states(rows: &[ScheduleRow], gaps: &[i64], rules: &ScheduleRules) -> Vec<State> {
    let other_tag = if gaps.len() >= OVERRULING_GAPS { OTHER_TAG } else { OTHER_TAG_OF_FEW };
    let mut costs = [0u32; STATES.len()];
    let mut origins: Vec<[usize; STATES.len()]> = Vec::with_capacity(gaps.len());
    for (index, gap) in gaps.iter().enumerate() {
        let neighbours = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let halves =
            neighbours.filter_map(|other| gaps.get(other)).any(|other| YEAR_DAYS.contains(&(gap + other)))
                && has_yearly_pairs(gaps, index);
        let cheapest = (0..STATES.len()).min_by_key(|state| costs[*state]).unwrap_or_default();
        let (mut next, mut from) = ([0; STATES.len()], [0; STATES.len()]);
        for (state, frequency) in STATES.into_iter().enumerate() {
            let changed = costs[cheapest] + if index == 0 { 0 } else { CHANGE };
            from[state] = if costs[state] <= changed { state } else { cheapest };
            next[state] = costs[state].min(changed)
                + gap_cost(frequency, *gap, halves, rules)
                + tag_cost(frequency, &rows[index + 1], other_tag)
                + if index == 0 { tag_cost(frequency, &rows[0], other_tag) } else { 0 };
        }
        costs = next;
        origins.push(from);
    }
    let mut state = (0..STATES.len()).min_by_key(|state| costs[*state]).unwrap_or_default();
    let mut states: Vec<State> = Vec::with_capacity(gaps.len());
    for from in origins.iter().rev() {
        states.push(STATES[state]);
        state = from[state];
    }
    states.reverse();
    states
}

/// True if at least [`YEARLY_PAIRS`] percent of the adjacent pairs among the six gaps around `index` sum to a
/// year.
fn has_yearly_pairs(gaps: &[i64], index: usize) -> bool {
    let around = &gaps[index.saturating_sub(GAPS_AROUND)..gaps.len().min(index + GAPS_AROUND + 1)];
    let (yearly, all) = around.windows(2).fold((0, 0), |(yearly, all), pair| {
        (yearly + i64::from(YEAR_DAYS.contains(&(pair[0] + pair[1]))), all + 1)
    });
    100 * yearly >= YEARLY_PAIRS * all
}

fn gap_cost(state: State, days: i64, halves: bool, rules: &ScheduleRules) -> u32 {
    match state {
        State::Irregular => IRREGULAR_GAP,
        State::Frequent if days <= FREQUENT_DAYS => 0,
        State::Frequent => LONG_GAP,
        State::PerYear(per_year) => {
            let periods = PeriodThousandths::in_days(days, per_year);
            let least = rules.slot_share * 10;
            // Three and six payments a year have a cost even if the gap fits. Without a tag, a more usual frequency
            // that also fits the gap is therefore preferred.
            let untagged = if matches!(per_year, 3 | 6) { 1 } else { 0 };
            if periods.is_one(least) {
                untagged
            } else if per_year == 2 && halves {
                UNEVEN_HALF
            } else if periods.0 < least {
                SHORT_GAP
            } else {
                LONG_GAP
            }
        }
    }
}

fn tag_cost(state: State, row: &ScheduleRow, other_tag: u32) -> u32 {
    let Some(tagged) = row.tag.and_then(|tag| tag.payments_per_year()) else { return 0 };
    match state {
        State::PerYear(per_year) if per_year == tagged => 0,
        State::Frequent if tagged > 12 => 0,
        State::Irregular => OTHER_TAG,
        _ => other_tag,
    }
}

/// Changes monthly gaps to [`State::Frequent`] (13 or more payments a year) if their mean is about four weeks.
fn drop_four_weekly(states: &mut [State], gaps: &[i64], rules: &ScheduleRules) {
    let mut start = 0;
    for run in states.chunk_by_mut(|a, b| a == b) {
        let days = &gaps[start..start + run.len()];
        start += run.len();
        let is_month = |days: &&i64| PeriodThousandths::in_days(**days, 12).is_one(rules.slot_share * 10);
        let (count, sum) =
            days.iter().filter(is_month).fold((0, 0), |(count, sum), days| (count + 1, sum + days));
        let is_four_weekly = run[0] == State::PerYear(12)
            && count >= FOUR_WEEKLY_GAPS
            && sum * 100 <= FOUR_WEEKLY_HUNDREDTHS * count;
        if is_four_weekly {
            run.fill(State::Frequent);
        }
    }
}

/// Number of payments a year around a row. If the gaps before and after it differ in frequency, the gap before it
/// decides, because a payment is for the time since the last one. The gap after it decides if only its frequency
/// continues the annual rate: 10.00 a year, then 2.75 a quarter.
fn of_row(rows: &[ScheduleRow], gaps: &[State], index: usize) -> Option<i32> {
    let before = index.checked_sub(1).and_then(|gap| gaps.get(gap));
    let (before, after) = match (before, gaps.get(index)) {
        (Some(before), Some(after)) if before != after => (before.per_year()?, after.per_year()?),
        (Some(state), _) | (None, Some(state)) => return state.per_year(),
        (None, None) => {
            return rows[index]
                .tag
                .and_then(|tag| tag.payments_per_year())
                .filter(|per_year| *per_year <= 12);
        }
    };
    // Two earlier rows are compared, because a single row may have a wrong amount.
    let earlier = &rows[index.saturating_sub(2)..index];
    let distance = |per_year: i32| {
        let own = rows[index].amount.saturating_mul(per_year.into());
        let ratio = |row: &ScheduleRow| {
            let other = row.amount.saturating_mul(before.into());
            own.max(other).checked_div(own.min(other)).unwrap_or(Decimal::MAX)
        };
        earlier.iter().map(ratio).min()
    };
    Some(if distance(after) < distance(before) { after } else { before })
}
