//! Price points to bytes, from the columns, without a struct a row.
//!
//! Invariant: the bytes equal those of [`PricePoint`] through serde, for every basis and interval.

use market::bars::{MISSING, date_of};
use market::price::{Adjusted, Basis, Micros, Multiplier, Period, micros};

use super::digits::{divided, write_digits, write_fraction, write_integer};
use crate::parameters::{Format, Output};

/// Bytes a point takes at most, usually.
const POINT: usize = 320;

/// What every row of a security is named with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) symbol: &'a str,
    pub(super) currency: Option<&'a str>,
}

fn columns(output: &Output) -> &[&'static str] {
    output.fields.as_deref().unwrap_or(output.columns)
}

/// Writes points; keeps what every row of a run of days shares.
pub(super) struct Writer<'a> {
    adjusted: &'a Adjusted<'a>,
    whose: Whose<'a>,
    cells: Vec<Cell>,
    /// One per column: what precedes its value.
    labels: Vec<Vec<u8>>,
    quote: Option<u8>,
    csv: bool,
    steps: Vec<Option<Prepared>>,
    /// The session at hand and its step.
    current: (usize, usize),
    /// Days on which something went ex, in order.
    ex_days: Vec<i32>,
    out: Vec<u8>,
}

/// A column, so that a row costs no comparisons of names.
#[derive(Debug, Clone, Copy)]
enum Cell {
    Symbol,
    Currency,
    Date,
    Open,
    High,
    Low,
    Close,
    Volume,
    Vwap,
    TradeCount,
    RawClose,
    AdjClose,
    SplitFactor,
    TotalFactor,
    Dividend,
    SplitRatio,
    Change,
    ChangePercent,
}

impl Cell {
    fn named(column: &str) -> Self {
        match column {
            "symbol" => Self::Symbol,
            "currency" => Self::Currency,
            "date" => Self::Date,
            "open" => Self::Open,
            "high" => Self::High,
            "low" => Self::Low,
            "close" => Self::Close,
            "volume" => Self::Volume,
            "vwap" => Self::Vwap,
            "trade_count" => Self::TradeCount,
            "raw_close" => Self::RawClose,
            "adj_close" => Self::AdjClose,
            "split_factor" => Self::SplitFactor,
            "total_factor" => Self::TotalFactor,
            "dividend" => Self::Dividend,
            "split_ratio" => Self::SplitRatio,
            "change" => Self::Change,
            _ => Self::ChangePercent,
        }
    }
}

/// What is the same for all sessions of a step.
#[derive(Clone)]
struct Prepared {
    split_factor: String,
    total_factor: String,
    /// By scale.
    raw: [Option<Multiplier>; 19],
    all: [Option<Multiplier>; 19],
    asked: [Option<Multiplier>; 19],
}

impl<'a> Writer<'a> {
    pub(super) fn new(adjusted: &'a Adjusted<'a>, whose: Whose<'a>, output: &Output, points: usize) -> Self {
        let columns = columns(output);
        let csv = output.format == Format::Csv;
        let label = |(index, column): (usize, &&str)| match (csv, index) {
            (true, 0) => Vec::new(),
            (true, _) => b",".to_vec(),
            (false, 0) => format!("{{\"{column}\":").into_bytes(),
            (false, _) => format!(",\"{column}\":").into_bytes(),
        };
        let mut ex_days: Vec<i32> =
            adjusted.factors.iter().map(|factor| market::bars::day_number(factor.ex_date)).collect();
        ex_days.sort_unstable();
        Self {
            adjusted,
            whose,
            cells: columns.iter().map(|column| Cell::named(column)).collect(),
            labels: columns.iter().enumerate().map(label).collect(),
            quote: (output.text_decimals && !csv).then_some(b'"'),
            csv,
            steps: vec![None; adjusted.cumulative.len()],
            current: (usize::MAX, 0),
            ex_days,
            out: Vec::with_capacity(points * POINT + 512),
        }
    }

    /// The rows of these periods, in their order: the items of a JSON array, or CSV records.
    pub(super) fn records<'p>(mut self, periods: impl Iterator<Item = &'p Period>) -> Vec<u8> {
        for (index, period) in periods.enumerate() {
            if index > 0 && !self.csv {
                self.out.push(b',');
            }
            self.row(period);
        }
        self.out
    }

    fn row(&mut self, period: &Period) {
        let position = self.prepare(period);
        self.current = (period.end - 1, position);
        for index in 0..self.cells.len() {
            self.out.extend_from_slice(&self.labels[index]);
            self.value(self.cells[index], period, position);
        }
        if self.csv {
            self.out.extend_from_slice(b"\r\n");
        } else if self.cells.is_empty() {
            self.out.extend_from_slice(b"{}");
        } else {
            self.out.push(b'}');
        }
    }

    /// Makes what the period's sessions need; gives the step of its last session.
    fn prepare(&mut self, period: &Period) -> usize {
        let bars = self.adjusted.bars;
        let mut position = 0;
        for session in period.clone() {
            position = self.adjusted.cumulative.position(bars.day[session]);
            let scale = usize::from(bars.scale[session]);
            let step = self.adjusted.cumulative.at(position);
            let prepared = self.steps[position].get_or_insert_with(|| Prepared {
                split_factor: step.factor(Basis::Split).to_string(),
                total_factor: step.factor(Basis::All).to_string(),
                raw: [const { None }; 19],
                all: [const { None }; 19],
                asked: [const { None }; 19],
            });
            if prepared.raw[scale].is_none() {
                let multiplier = |basis| Some(Multiplier::new(step, basis, u32::from(bars.scale[session])));
                prepared.raw[scale] = multiplier(Basis::Raw);
                prepared.all[scale] = multiplier(Basis::All);
                prepared.asked[scale] = multiplier(self.adjusted.basis);
            }
        }
        position
    }

    fn value(&mut self, cell: Cell, period: &Period, position: usize) {
        let (adjusted, last) = (self.adjusted, period.end - 1);
        let bars = adjusted.bars;
        match cell {
            Cell::Symbol => self.word(Some(self.whose.symbol)),
            Cell::Currency => self.word(self.whose.currency),
            Cell::Date => self.date(bars.day[last]),
            Cell::Open => {
                self.price(period.clone().find_map(|session| self.asked(session, bars.open[session])))
            }
            Cell::High => {
                self.price(period.clone().filter_map(|session| self.asked(session, bars.high[session])).max())
            }
            Cell::Low => {
                self.price(period.clone().filter_map(|session| self.asked(session, bars.low[session])).min())
            }
            Cell::Close => self.price(self.asked(last, bars.close[last])),
            Cell::Volume => self.count(adjusted.volume(period)),
            Cell::Vwap => self.vwap(period),
            Cell::TradeCount => self.count(adjusted.trade_count(period)),
            Cell::RawClose => self.price(self.on(last, bars.close[last], Basis::Raw)),
            Cell::AdjClose => self.price(self.on(last, bars.close[last], Basis::All)),
            Cell::SplitFactor => self.factor(position, |prepared| &prepared.split_factor),
            Cell::TotalFactor => self.factor(position, |prepared| &prepared.total_factor),
            Cell::Dividend => self.decimal(self.event(period).0),
            Cell::SplitRatio => self.decimal(self.event(period).1),
            Cell::Change => self.price(self.change(period)),
            Cell::ChangePercent => self.change_percent(period),
        }
    }

    /// A raw value of a session on the requested basis.
    fn asked(&self, session: usize, value: i64) -> Option<Micros> {
        self.on(session, value, self.adjusted.basis)
    }

    fn on(&self, session: usize, value: i64, basis: Basis) -> Option<Micros> {
        if value == MISSING {
            return None;
        }
        let bars = self.adjusted.bars;
        let position = self.position(session);
        let step = self.adjusted.cumulative.at(position);
        let scale = usize::from(bars.scale[session]);
        let prepared = self.steps[position].as_ref();
        let multiplier = prepared.and_then(|prepared| match basis {
            _ if basis == self.adjusted.basis => prepared.asked[scale].as_ref(),
            Basis::Raw => prepared.raw[scale].as_ref(),
            _ => prepared.all[scale].as_ref(),
        });
        match multiplier {
            Some(multiplier) => Some(multiplier.micros(step, value)),
            None => self.adjusted.exact(session, value, basis).map(micros),
        }
    }

    fn position(&self, session: usize) -> usize {
        if session == self.current.0 {
            return self.current.1;
        }
        self.adjusted.cumulative.position(self.adjusted.bars.day[session])
    }

    /// Change of the close; by the difference of the raw closes while both are on one step and scale.
    fn change(&self, period: &Period) -> Option<Micros> {
        let before = period.start.checked_sub(1)?;
        let difference = self.difference(period.end - 1, before);
        match difference {
            Some((difference, _)) => self.asked(period.end - 1, difference),
            None => self.adjusted.change(period).map(|(change, _)| micros(change)),
        }
    }

    /// The difference of two raw closes and the earlier of them, when nothing happened between them.
    fn difference(&self, last: usize, before: usize) -> Option<(i64, i64)> {
        let bars = self.adjusted.bars;
        let same_step = self.adjusted.basis == Basis::Raw || self.position(last) == self.position(before);
        if !same_step || bars.scale[last] != bars.scale[before] {
            return None;
        }
        Some((bars.close[last].checked_sub(bars.close[before])?, bars.close[before]))
    }

    fn change_percent(&mut self, period: &Period) {
        let difference =
            period.start.checked_sub(1).and_then(|before| self.difference(period.end - 1, before));
        match difference {
            Some((difference, previous)) if previous != 0 => {
                self.scaled(divided(i128::from(difference) * 1_000_000, i128::from(previous)), 4);
            }
            _ => {
                let percent = self.adjusted.change(period).and_then(|(_, percent)| percent);
                self.decimal(percent.map(|percent| market::value::round(percent, 4)));
            }
        }
    }

    fn vwap(&mut self, period: &Period) {
        let value = match period.len() {
            1 => self.asked(period.start, self.adjusted.bars.vwap[period.start]),
            _ => self.adjusted.vwap(period).map(micros),
        };
        self.price(value);
    }

    fn event(&self, period: &Period) -> (Option<rust_decimal::Decimal>, Option<rust_decimal::Decimal>) {
        let bars = self.adjusted.bars;
        let after = period.start.checked_sub(1).map_or(bars.day[0] - 1, |before| bars.day[before]);
        let last = bars.day[period.end - 1];
        let next = self.ex_days.partition_point(|day| *day <= after);
        let any = self.ex_days.get(next).is_some_and(|day| *day <= last);
        if any { self.adjusted.events(period) } else { (None, None) }
    }

    /// A ticker or a currency code: letters, digits and points, which need no escape.
    fn word(&mut self, value: Option<&str>) {
        let Some(value) = value else { return self.nothing() };
        let quote = (!self.csv).then_some(b'"');
        self.out.extend(quote);
        self.out.extend_from_slice(value.as_bytes());
        self.out.extend(quote);
    }

    fn nothing(&mut self) {
        if !self.csv {
            self.out.extend_from_slice(b"null");
        }
    }

    fn price(&mut self, value: Option<Micros>) {
        match value {
            Some(value) => self.scaled(value, 6),
            None => self.nothing(),
        }
    }

    /// An integer with this many decimal places, trailing zeros cut.
    fn scaled(&mut self, value: i128, places: u32) {
        self.out.extend(self.quote);
        if value < 0 {
            self.out.push(b'-');
        }
        let (unit, magnitude) = (10u64.pow(places), value.unsigned_abs());
        match u64::try_from(magnitude) {
            Ok(magnitude) => {
                write_integer(&mut self.out, magnitude / unit);
                write_fraction(&mut self.out, magnitude % unit, places);
            }
            Err(_) => {
                let (whole, fraction) = (magnitude / u128::from(unit), magnitude % u128::from(unit));
                self.out.extend_from_slice(whole.to_string().as_bytes());
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a remainder is less than its 64-bit divisor"
                )]
                write_fraction(&mut self.out, fraction as u64, places);
            }
        }
        self.out.extend(self.quote);
    }

    fn count(&mut self, value: Option<i64>) {
        match value {
            Some(value) => {
                if value < 0 {
                    self.out.push(b'-');
                }
                write_integer(&mut self.out, value.unsigned_abs());
            }
            None => self.nothing(),
        }
    }

    fn decimal(&mut self, value: Option<rust_decimal::Decimal>) {
        match value {
            Some(value) => {
                self.out.extend(self.quote);
                self.out.extend_from_slice(value.normalize().to_string().as_bytes());
                self.out.extend(self.quote);
            }
            None => self.nothing(),
        }
    }

    fn factor(&mut self, position: usize, which: impl Fn(&Prepared) -> &str) {
        self.out.extend(self.quote);
        if let Some(prepared) = &self.steps[position] {
            self.out.extend_from_slice(which(prepared).as_bytes());
        }
        self.out.extend(self.quote);
    }

    fn date(&mut self, day: i32) {
        use chrono::Datelike;
        let date = date_of(day);
        let year = u64::from(date.year().unsigned_abs());
        self.out.extend((!self.csv).then_some(b'"'));
        write_digits(&mut self.out, year, 4);
        self.out.push(b'-');
        write_digits(&mut self.out, date.month().into(), 2);
        self.out.push(b'-');
        write_digits(&mut self.out, date.day().into(), 2);
        self.out.extend((!self.csv).then_some(b'"'));
    }
}

#[cfg(test)]
mod tests {
    use market::bars::date_of;
    use market::measure::Factor;
    use market::measure::adjust::Ratio;
    use market::price::{CumulativeFactors, Interval, PricePoint, RawBars};
    use market::row::TableRow;
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::*;

    fn columns(rows: &[(i32, i64, i64, bool)], scale: u8) -> RawBars {
        let mut columns = RawBars::default();
        for (day, close, range, known) in rows {
            let maybe = |value: i64| if *known { value } else { MISSING };
            columns.day.push(columns.day.last().unwrap_or(&700_000) + day);
            columns.scale.push(scale + u8::from(*known));
            columns.open.push(maybe(close - range / 2));
            columns.high.push(close + range);
            columns.low.push(close - range);
            columns.close.push(*close);
            columns.volume.push(maybe(range * 1_000));
            columns.vwap.push(maybe(close + 1));
            columns.trade_count.push(maybe(*range));
        }
        columns
    }

    fn factors(events: &[(usize, i64, i64, i64)], columns: &RawBars) -> Vec<Factor> {
        let factor = |(position, from, to, cash): &(usize, i64, i64, i64)| Factor {
            ex_date: date_of(columns.day[position % columns.len()] - i32::from(*cash % 3 == 0)),
            split: Ratio { from: (*from).into(), to: (*to).into() },
            dividend_factor: Decimal::ONE - Decimal::from(*cash) / Decimal::from(7_001),
            dividend: Decimal::new(*cash, 3),
            value: None,
        };
        events.iter().map(factor).collect()
    }

    proptest! {
        #[test]
        fn bytes_equal_those_of_the_struct(
            rows in proptest::collection::vec((1i32..9, 1_000i64..9_000_000, 1i64..900, any::<bool>()), 1..40),
            events in proptest::collection::vec((0usize..40, 1i64..8, 1i64..8, 0i64..900), 0..5),
            scale in 0u8..7, interval in 0usize..5, basis in 0usize..3, text: bool,
        ) {
            let bars = columns(&rows, scale);
            let factors = factors(&events, &bars);
            let cumulative = CumulativeFactors::new(&factors, None);
            let basis = [Basis::Raw, Basis::Split, Basis::All][basis];
            let adjusted = Adjusted { bars: &bars, cumulative: &cumulative, factors: &factors, basis };
            let periods = Interval::ALL[interval].periods(&bars.day, 0..bars.len());
            let output = Output { text_decimals: text, columns: PricePoint::COLUMNS, ..Output::default() };
            let whose = Whose { symbol: "A.B", currency: None };
            let written = Writer::new(&adjusted, whose, &output, periods.len()).records(periods.iter());
            let points: Vec<PricePoint> = periods.iter().map(|period| adjusted.point(period)).collect();
            let body = || serde_json::to_string(&points).unwrap_or_default();
            let expected = if text { market::value::with_decimals_as_text(body) } else { body() };
            prop_assert_eq!(String::from_utf8_lossy(&written).into_owned(), expected.trim_matches(['[', ']']));
        }
    }
}
