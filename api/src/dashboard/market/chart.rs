//! Charts as SVG, rendered on the server: prices as a line, amounts as stacked bars. Each has a text alternative.
//!
//! A long line is reduced to fewer points by the algorithm Largest Triangle Three Buckets (LTTB, Steinarsson 2013).
//! Displayed figures are exact decimals, and are not computed from the coordinates.

use std::fmt::Write;

use chrono::{Datelike, NaiveDate};
use market::decimal::ExactDecimal;
use maud::{Markup, html};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Deserialize;

use crate::dashboard::market::values::render_date;
use crate::dashboard::view::layout::{Number, Text, data_table};

/// Width and height of the drawing, in SVG units. The browser stretches the drawing.
const WIDTH: i64 = 2_000;
const PRICE_HEIGHT: i64 = 600;
/// Height of the short vertical line that marks an ex-date, in SVG units.
const MARK: i64 = 24;
/// Maximum number of points of the drawn line.
const POINTS: usize = 800;
/// Maximum length in days of a chart with one table row per month. Longer charts have one table row per year.
const MONTHLY_DAYS: i64 = 750;

/// Closing price of a day or week, as `/v1/prices/{symbol}` returns it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Close {
    date: NaiveDate,
    close: ExactDecimal,
}

/// Content of the chart.
#[derive(Debug)]
pub(crate) struct PriceChart<'a> {
    /// Name of the line, for example `Raw close`.
    pub(crate) title: &'a str,
    pub(crate) currency: &'a str,
    /// Closes, oldest first.
    pub(crate) closes: &'a [Close],
    pub(crate) ex_dates: &'a [NaiveDate],
    /// Day and ratio of each split.
    pub(crate) splits: &'a [(NaiveDate, &'a str)],
}

impl PriceChart<'_> {
    /// Renders the chart; `None` without closes of at least two days.
    pub(crate) fn render(&self) -> Option<Markup> {
        let (first, last) = (self.closes.first()?, self.closes.last()?);
        let least = self.closes.iter().min_by_key(|close| close.close.0)?;
        let most = self.closes.iter().max_by_key(|close| close.close.0)?;
        let days = (last.date - first.date).num_days();
        if days < 1 {
            return None;
        }
        let axis = Axis::around(least.close.0, most.close.0);
        let x = |day: NaiveDate| (day - first.date).num_days() * WIDTH / days;
        let point = |close: &Close| (x(close.date), PRICE_HEIGHT - axis.place(close.close.0, PRICE_HEIGHT));
        let line = path_of(&thin_line(&self.closes.iter().map(point).collect::<Vec<_>>(), POINTS));
        let is_within = |day: &NaiveDate| first.date <= *day && *day <= last.date;
        let marks: String =
            self.ex_dates.iter().filter(|day| is_within(day)).fold(String::new(), |mut marks, day| {
                let _ = write!(marks, "M{} {}v{MARK}", x(*day), PRICE_HEIGHT - MARK);
                marks
            });
        let splits: Vec<_> = self.splits.iter().filter(|(day, _)| is_within(day)).collect();
        let label = format!(
            "{} from {} to {}: first {}, last {}, lowest {} on {}, highest {} on {}, in {}",
            self.title,
            first.date,
            last.date,
            first.close,
            last.close,
            least.close,
            least.date,
            most.close,
            most.date,
            self.currency
        );
        let labels = axis.labels();
        let lines = i64::try_from(labels.len()).unwrap_or(2).max(2) - 1;
        let middle = self.closes[self.closes.len() / 2].date;
        Some(html! {
            figure.chart.price {
                ul.legend aria-hidden="true" {
                    li { span.dot.line {} (self.title) }
                    @if !marks.is_empty() { li { span.dot.ex {} "Ex-dates" } }
                    @if !splits.is_empty() { li { span.dot.split {} "Splits" } }
                }
                p.unit aria-hidden="true" { (self.currency) }
                div.plot {
                    ol.scale aria-hidden="true" { @for value in labels { li { (value) } } }
                    svg role="img" aria-label=(label) viewBox={ "0 0 " (WIDTH) " " (PRICE_HEIGHT) } preserveAspectRatio="none" {
                        @for number in 0..lines { line.grid x1="0" x2=(WIDTH) y1=(number * PRICE_HEIGHT / lines) y2=(number * PRICE_HEIGHT / lines) {} }
                        @for (day, ratio) in &splits { line.split x1=(x(*day)) x2=(x(*day)) y1="0" y2=(PRICE_HEIGHT) { title { "Split " (ratio) " on " (day) } } }
                        path.ex d=(marks) {}
                        path.line d=(line) {}
                        line.axis x1="0" x2=(WIDTH) y1=(PRICE_HEIGHT) y2=(PRICE_HEIGHT) {}
                    }
                    div.ends aria-hidden="true" { @for day in [first.date, middle, last.date] { span { (day.format("%b %Y")) } } }
                }
            }
            details { summary { "The same as a table" } (self.table(days)) }
        })
    }

    /// Table of the last close of each month, or of each year in a chart longer than [`MONTHLY_DAYS`]. The newest close
    /// comes first.
    fn table(&self, days: i64) -> Markup {
        let period = |day: NaiveDate| (day.year(), if days <= MONTHLY_DAYS { day.month() } else { 0 });
        let mut rows: Vec<&Close> = Vec::new();
        for close in self.closes.iter().rev() {
            if rows.last().is_none_or(|newer| period(newer.date) != period(close.date)) {
                rows.push(close);
            }
        }
        html! {
            (data_table(self.title, &[Text("Session"), Number(&format!("{}, {}", self.title, self.currency))], html! {
                @for row in rows { tr { th scope="row" { (render_date(&row.date.to_string())) } td.number { (row.close) } } }
            }))
        }
    }
}

fn path_of(points: &[Point]) -> String {
    let mut path = String::with_capacity(points.len() * 9);
    for (number, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{x} {y}", if number == 0 { 'M' } else { 'L' });
    }
    path
}

const BARS_HEIGHT: i64 = 160;
/// Distance between the left edges of two adjacent bars, in units of the drawing.
const STEP: i64 = 24;
const BAR: i64 = 16;
/// Maximum number of bars in a chart that labels every bar. In a chart with more bars, only the first, the middle and
/// the last bar have a label.
const MOST_LABELS: usize = 12;

/// Bar of one period: a solid part, and a light part on top of it.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) solid: Decimal,
    pub(crate) light: Decimal,
}

/// Stacked bar chart. `solid` and `light` are the names of the two parts of a bar. `unit` is the unit of the amounts,
/// and `label` is the text alternative for screen readers.
#[derive(Debug)]
pub(crate) struct BarChart<'a> {
    pub(crate) solid: &'a str,
    pub(crate) light: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) label: &'a str,
    pub(crate) bars: &'a [Bar],
}

impl BarChart<'_> {
    pub(crate) fn render(&self) -> Markup {
        let most = self.bars.iter().map(|bar| bar.solid + bar.light).max().unwrap_or_default();
        let axis = Axis::around(Decimal::ZERO, most);
        let width = i64::try_from(self.bars.len()).unwrap_or(1).max(1) * STEP;
        let labels = axis.labels();
        let lines = i64::try_from(labels.len()).unwrap_or(2).max(2) - 1;
        let ends = [0, self.bars.len() / 2, self.bars.len().saturating_sub(1)];
        html! {
            figure.chart {
                ul.legend aria-hidden="true" { li { span.dot.answered {} (self.solid) } li { span.dot.light {} (self.light) } }
                p.unit aria-hidden="true" { (self.unit) }
                div.plot {
                    ol.scale aria-hidden="true" { @for value in labels { li { (value) } } }
                    svg role="img" aria-label=(self.label) viewBox={ "0 0 " (width) " " (BARS_HEIGHT) } preserveAspectRatio="none" {
                        @for number in 0..lines { line.grid x1="0" x2=(width) y1=(number * BARS_HEIGHT / lines) y2=(number * BARS_HEIGHT / lines) {} }
                        @for (number, bar) in (0..).zip(self.bars) { (render_bar(number * STEP + (STEP - BAR) / 2, bar, &axis)) }
                        line.axis x1="0" x2=(width) y1=(BARS_HEIGHT) y2=(BARS_HEIGHT) {}
                    }
                    div.ends.each[self.bars.len() <= MOST_LABELS] aria-hidden="true" {
                        @if self.bars.len() > MOST_LABELS { @for place in ends { span { (self.bars[place].label) } } }
                        @else { @for bar in self.bars { span { (bar.label) } } }
                    }
                }
            }
        }
    }
}

fn render_bar(x: i64, bar: &Bar, axis: &Axis) -> Markup {
    let solid = axis.place(bar.solid, BARS_HEIGHT);
    let whole = axis.place(bar.solid + bar.light, BARS_HEIGHT);
    html! {
        @if solid > 0 { rect.answered x=(x) y=(BARS_HEIGHT - solid) width=(BAR) height=(solid) {} }
        @if whole > solid { rect.light x=(x) y=(BARS_HEIGHT - whole) width=(BAR) height=(whole - solid) {} }
    }
}

/// Maximum number of steps between the lowest and the highest value. The axis may have one step more, because its
/// bounds are rounded outward.
const INTERVALS: i64 = 5;

/// Axis from `low` to `high` in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    low: Decimal,
    high: Decimal,
    step: Decimal,
}

impl Axis {
    /// Creates an axis that contains both values, with steps of 1, 2 or 5 times a power of ten.
    pub(crate) fn around(least: Decimal, most: Decimal) -> Self {
        let range = if most > least { most - least } else { most.abs().max(Decimal::ONE) };
        let mut power = Decimal::new(1, 10);
        let step = loop {
            let steps = [1, 2, 5].map(|factor| power * Decimal::from(factor));
            if let Some(step) = steps.into_iter().find(|step| *step * Decimal::from(INTERVALS) >= range) {
                break step.normalize();
            }
            power *= Decimal::TEN;
        };
        let low = (least / step).floor() * step;
        let high = ((most / step).ceil() * step).max(low + step);
        Self { low, high, step }
    }

    /// Position of a value on an axis of `length` drawing units. Position 0 is at the bottom, `length` at the top.
    pub(crate) fn place(&self, value: Decimal, length: i64) -> i64 {
        let share = (value - self.low) * Decimal::from(length) / (self.high - self.low);
        share.round().to_i64().unwrap_or(0).clamp(0, length)
    }

    /// Labelled values, from the top down.
    pub(crate) fn labels(&self) -> Vec<Decimal> {
        let mut labels = Vec::new();
        let mut value = self.high;
        while value >= self.low {
            let mut label = value;
            label.rescale(self.step.scale());
            labels.push(label);
            value -= self.step;
        }
        labels
    }
}

/// Point of a drawing.
pub(crate) type Point = (i64, i64);

/// Selects at most `most` points that preserve the shape of the line, including the first and the last point.
fn thin_line(points: &[Point], most: usize) -> Vec<Point> {
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return vec![] };
    if points.len() <= most || most < 3 {
        return points.to_vec();
    }
    let inner = points.len() - 2;
    let buckets = most - 2;
    let bucket = |number: usize| &points[1 + number * inner / buckets..1 + (number + 1) * inner / buckets];
    let mut kept = vec![first];
    let mut before = first;
    for number in 0..buckets {
        let after = if number + 1 < buckets { mean(bucket(number + 1)) } else { last };
        let largest = bucket(number).iter().copied().max_by_key(|point| area(before, *point, after));
        before = largest.unwrap_or(before);
        kept.push(before);
    }
    kept.push(last);
    kept
}

/// Twice the area of a triangle.
fn area(a: Point, b: Point, c: Point) -> i64 {
    ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs()
}

fn mean(points: &[Point]) -> Point {
    let count = i64::try_from(points.len()).unwrap_or(1).max(1);
    let sum = points.iter().fold((0, 0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(least: &str, most: &str, labels: &[&str]) {
        let number = |text: &str| text.parse::<Decimal>().expect("a number");
        let axis = Axis::around(number(least), number(most));
        let found: Vec<String> = axis.labels().iter().map(ToString::to_string).collect();
        assert_eq!(found, labels, "{least} to {most}");
    }

    #[test]
    fn bounds_are_round_and_contain_the_values() {
        check("51.2", "63.9", &["65", "60", "55", "50"]);
        check("0", "1.94", &["2.0", "1.5", "1.0", "0.5", "0.0"]);
        check("0", "0", &["0.2", "0.0"]);
        check("120000", "980000", &["1000000", "800000", "600000", "400000", "200000", "0"]);
        check("7", "7", &["8", "6"]);
    }

    #[test]
    fn places_are_shares_of_the_length() {
        let axis = Axis::around(Decimal::ZERO, Decimal::TEN);
        let places = [0, 5, 10].map(|value| axis.place(Decimal::from(value), 600));
        assert_eq!(places, [0, 300, 600]);
    }

    #[test]
    fn a_thin_line_keeps_its_ends_and_its_peaks() {
        let mut points: Vec<Point> = (0..1_000).map(|x| (x, 100)).collect();
        points[437].1 = 900;
        let thin = thin_line(&points, 50);
        assert_eq!((thin.len(), thin[0], thin[49]), (50, (0, 100), (999, 100)));
        assert!(thin.contains(&(437, 900)), "{thin:?}");
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0), "{thin:?}");
    }

    #[test]
    fn a_short_line_stays() {
        assert_eq!(thin_line(&[(0, 1), (1, 2)], 10), [(0, 1), (1, 2)]);
        assert_eq!(thin_line(&[], 10), []);
    }
}
