//! Chart of closing prices as SVG, rendered on the server, with a table of the same values. It has the prices of one
//! security, or the changes of several since the first common day.
//!
//! A long line is reduced to fewer points by the algorithm Largest Triangle Three Buckets (LTTB, Steinarsson 2013).
//! Displayed figures are exact decimals, and are not computed from the coordinates.

use std::fmt::Write;

use chrono::{Datelike, Months, NaiveDate};
use market::decimal::ExactDecimal;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::dashboard::market::values::render_date;
use crate::dashboard::view::layout::{Heading, Number, Text, data_table};
use crate::dashboard::view::plot::{Axis, HEIGHT, Plot, PlotText, PlotValue, Tick, WIDTH, units};

/// Height of the short vertical line that marks an ex-date, in SVG units.
const MARK: Decimal = units(24);
/// Maximum number of points of a drawn line, and of all lines of a comparison.
const POINTS: usize = 800;
/// Maximum number of days whose values a reader can choose. In a longer chart, each is the last day of a period.
const VALUES: usize = 260;
/// Maximum length in days of a chart with one table row per month, and with a label for each month. Longer charts have
/// one table row and one label per year.
const MONTHLY_DAYS: i64 = 750;
/// Number of labels that fit a narrow screen.
const NARROW_LABELS: usize = 6;
/// Maximum number of labels. A longer chart labels every second year.
const MOST_LABELS: usize = 32;

/// Closing price of a day or week, as `/v1/prices/{symbol}` returns it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Close {
    pub(crate) date: NaiveDate,
    pub(crate) close: ExactDecimal,
}

/// Closes of one security, oldest first.
#[derive(Debug, Clone)]
pub(crate) struct PriceLine {
    pub(crate) name: String,
    pub(crate) closes: Vec<Close>,
}

/// Content of the chart.
#[derive(Debug, Default)]
pub(crate) struct PriceChart<'a> {
    /// Name of the values, for example `Raw close`.
    pub(crate) title: &'a str,
    pub(crate) currency: &'a str,
    /// Line of the security, and lines of the securities with which it is compared.
    pub(crate) lines: Vec<PriceLine>,
    /// Day and description of each ex-date of the security.
    pub(crate) ex_dates: Vec<(NaiveDate, String)>,
    /// Day and description of each split of the security.
    pub(crate) splits: Vec<(NaiveDate, String)>,
}

impl PriceChart<'_> {
    /// Renders the chart; `None` without closes of at least two days.
    pub(crate) fn render(&self) -> Option<Markup> {
        let changes;
        let lines = match self.lines.len() {
            1 => &self.lines,
            _ => {
                changes = to_changes(&self.lines)?;
                &changes
            }
        };
        let main = lines.first()?;
        let values = || lines.iter().flat_map(|line| &line.closes);
        let first = values().map(|close| close.date).min()?;
        let last = values().map(|close| close.date).max()?;
        let days = (last - first).num_days();
        if days < 1 {
            return None;
        }
        let axis = Axis::around(
            values().map(|close| close.close.0).min()?,
            values().map(|close| close.close.0).max()?,
        );
        let x =
            |day: NaiveDate| (Decimal::from((day - first).num_days()) * WIDTH / Decimal::from(days)).trunc();
        let y = |value: Decimal| HEIGHT - axis.place(value, HEIGHT);
        let most = POINTS / lines.len();
        let path = |line: &PriceLine| {
            let points: Vec<Point> =
                line.closes.iter().map(|close| (x(close.date), y(close.close.0))).collect();
            path_of(&thin_line(&points, most))
        };
        let is_within = |day: NaiveDate| first <= day && day <= last;
        let mut marks = String::new();
        for (day, _) in self.ex_dates.iter().filter(|(day, _)| is_within(*day)) {
            let _ = write!(marks, "M{} {}v{MARK}", x(*day), HEIGHT - MARK);
        }
        let splits: Vec<Decimal> =
            self.splits.iter().filter(|(day, _)| is_within(*day)).map(|(day, _)| x(*day)).collect();
        let newest = |line: &PriceLine| line.closes.last().map(|close| (x(close.date), y(close.close.0)));
        let text = |close: &Close| PlotText {
            class: "newest",
            x: x(close.date),
            y: y(close.close.0),
            text: self.text_of(close.close.0),
        };
        let is_single = lines.len() == 1;
        let shapes = html! {
            @for x in &splits { line.split x1=(x) x2=(x) y1="0" y2=(HEIGHT) {} }
            path.ex d=(marks) {}
            @for (number, line) in lines.iter().enumerate() {
                path.line.{ "line-" (number) } d=(path(line)) {}
                @if let Some((x, y)) = newest(line) { path.point.{ "line-" (number) } d={ "M" (x) " " (y) "h0" } {} }
            }
        };
        let plot = Plot {
            label: &self.describe(lines),
            unit: if is_single { self.currency } else { "Change since the first day, %" },
            axis,
            shapes,
            texts: main.closes.last().filter(|_| is_single).map(text).into_iter().collect(),
            ticks: ticks(first, last).into_iter().map(|(day, tick)| Tick { x: x(day), ..tick }).collect(),
            values: self.values(lines, x),
        };
        Some(html! {
            figure.chart.price {
                ul.legend aria-hidden="true" {
                    @for (number, line) in lines.iter().enumerate() {
                        li { span.dot.{ "line-" (number) } {} (line.name) @if !is_single { @if let Some(close) = line.closes.last() { " " (self.text_of(close.close.0)) } } }
                    }
                    @if !marks.is_empty() { li { span.dot.ex {} "Ex-dates" } }
                    @if !splits.is_empty() { li { span.dot.split {} "Splits" } }
                }
                (plot.render())
            }
            details { summary { "The same as a table" } (self.table(lines, days)) }
        })
    }

    fn text_of(&self, value: Decimal) -> String {
        if self.lines.len() == 1 { format!("{value} {}", self.currency) } else { format!("{value:+.2}%") }
    }

    /// Text alternative of the chart.
    fn describe(&self, lines: &[PriceLine]) -> String {
        let [PriceLine { closes, .. }] = lines else {
            let newest = |line: &PriceLine| {
                let change = line.closes.last().map(|close| self.text_of(close.close.0));
                format!("{} {}", line.name, change.unwrap_or_default())
            };
            let changes: Vec<String> = lines.iter().map(newest).collect();
            return format!("{}, change in the range: {}", self.title, changes.join(", "));
        };
        let key = |close: &&Close| close.close.0;
        let ends = closes.first().zip(closes.last());
        let extremes = closes.iter().min_by_key(key).zip(closes.iter().max_by_key(key));
        let Some(((first, last), (least, most))) = ends.zip(extremes) else { return String::new() };
        format!(
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
        )
    }

    /// Values of the last day of each period, with the ex-dates and splits of the period.
    fn values(&self, lines: &[PriceLine], x: impl Fn(NaiveDate) -> Decimal) -> Vec<PlotValue> {
        let Some((main, others)) = lines.split_first() else { return Vec::new() };
        let length = main.closes.len().div_ceil(VALUES).max(1);
        let mut values = Vec::new();
        let mut after = None;
        for close in main.closes.iter().rev().step_by(length).rev() {
            let mut text = format!("{}: ", close.date.format("%-d %b %Y"));
            if !others.is_empty() {
                let _ = write!(text, "{} ", main.name);
            }
            text += &self.text_of(close.close.0);
            for line in others {
                if let Some(value) = value_on(line, close.date) {
                    let _ = write!(text, ", {} {}", line.name, self.text_of(value));
                }
            }
            let is_in_period = |day: NaiveDate| after.is_none_or(|after| after < day) && day <= close.date;
            let events = self.ex_dates.iter().rev().chain(&self.splits);
            for (_, event) in events.filter(|(day, _)| is_in_period(*day)) {
                let _ = write!(text, " · {event}");
            }
            values.push(PlotValue { x: x(close.date), text });
            after = Some(close.date);
        }
        values
    }

    /// Table of the last value of each month, or of each year in a chart longer than [`MONTHLY_DAYS`]. The newest value
    /// comes first.
    fn table(&self, lines: &[PriceLine], days: i64) -> Markup {
        let Some((main, others)) = lines.split_first() else { return Markup::default() };
        let period = |day: NaiveDate| (day.year(), if days <= MONTHLY_DAYS { day.month() } else { 0 });
        let mut rows: Vec<&Close> = Vec::new();
        for close in main.closes.iter().rev() {
            if rows.last().is_none_or(|newer| period(newer.date) != period(close.date)) {
                rows.push(close);
            }
        }
        let title = format!("{}, {}", self.title, self.currency);
        let names = others.iter().map(|line| Number(line.name.as_str()));
        let main_title = if others.is_empty() { title.as_str() } else { main.name.as_str() };
        let headings: Vec<Heading<'_>> =
            [Text("Session"), Number(main_title)].into_iter().chain(names).collect();
        let cell = |value: Decimal| if others.is_empty() { value.to_string() } else { self.text_of(value) };
        data_table(
            self.title,
            &headings,
            html! {
                @for row in rows {
                    tr {
                        th scope="row" { (render_date(&row.date.to_string())) }
                        td.number { (cell(row.close.0)) }
                        @for line in others { td.number { (value_on(line, row.date).map_or_else(|| "–".to_owned(), cell)) } }
                    }
                }
            },
        )
    }
}

/// Value on a day, or on the last day before it.
fn value_on(line: &PriceLine, day: NaiveDate) -> Option<Decimal> {
    let later = line.closes.partition_point(|close| close.date <= day);
    Some(line.closes.get(later.checked_sub(1)?)?.close.0)
}

/// Changes since the first day on which all lines have a value, in percent. Lines without a value are left out; `None`
/// if no line remains.
fn to_changes(lines: &[PriceLine]) -> Option<Vec<PriceLine>> {
    let known = || lines.iter().filter(|line| !line.closes.is_empty());
    let start = known().filter_map(|line| Some(line.closes.first()?.date)).max()?;
    let change = |line: &PriceLine| {
        let closes: Vec<Close> = line.closes.iter().filter(|close| close.date >= start).copied().collect();
        let base = closes.first()?.close.0;
        let change = |close: &Close| {
            let percent = (close.close.0 - base).checked_mul(Decimal::ONE_HUNDRED)?.checked_div(base)?;
            Some(Close { date: close.date, close: ExactDecimal(market::decimal::round(percent, 2)) })
        };
        Some(PriceLine { name: line.name.clone(), closes: closes.iter().filter_map(change).collect() })
    };
    Some(known().filter_map(change).collect())
}

/// Labels of the days from `first` to `last`: the begin of each month in a short chart, and of each year in a long one.
fn ticks(first: NaiveDate, last: NaiveDate) -> Vec<(NaiveDate, Tick)> {
    let months = if (last - first).num_days() <= MONTHLY_DAYS { 1 } else { 12 };
    let year = NaiveDate::from_yo_opt(first.year(), 1).unwrap_or(first);
    let begins = (0..).map_while(|number: u32| year.checked_add_months(Months::new(number * months)));
    let days: Vec<NaiveDate> = begins.take_while(|day| *day <= last).filter(|day| *day >= first).collect();
    let (step, narrow_step) = (days.len().div_ceil(MOST_LABELS), days.len().div_ceil(NARROW_LABELS));
    let tick = |(number, day): (usize, &NaiveDate)| {
        let begins_year = day.month() == 1;
        let text = if begins_year { day.year().to_string() } else { day.format("%b").to_string() };
        (*day, Tick { x: Decimal::ZERO, text, is_minor: number % narrow_step.max(1) != 0, has_line: true })
    };
    let numbered = days.iter().rev().enumerate().step_by(step.max(1));
    numbered.map(tick).collect()
}

fn path_of(points: &[Point]) -> String {
    let mut path = String::with_capacity(points.len() * 9);
    for (number, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{x} {y}", if number == 0 { 'M' } else { 'L' });
    }
    path
}

/// Point of a drawing.
type Point = (Decimal, Decimal);

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
fn area(a: Point, b: Point, c: Point) -> Decimal {
    ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs()
}

fn mean(points: &[Point]) -> Point {
    let count = Decimal::from(points.len().max(1));
    let sum = |coordinate: fn(&Point) -> Decimal| points.iter().map(coordinate).sum::<Decimal>();
    ((sum(|point| point.0) / count).trunc(), (sum(|point| point.1) / count).trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a date")
    }

    fn line(name: &str, closes: &[(&str, i64)]) -> PriceLine {
        let close = |(date, cents): &(&str, i64)| Close {
            date: day(date),
            close: ExactDecimal(Decimal::new(*cents, 2)),
        };
        PriceLine { name: name.to_owned(), closes: closes.iter().map(close).collect() }
    }

    #[test]
    fn every_year_has_a_label_and_a_short_range_has_months() {
        let texts = |first: &str, last: &str| {
            let ticks = ticks(day(first), day(last)).into_iter().rev();
            ticks.map(|(_, tick)| tick.text).collect::<Vec<_>>()
        };
        assert_eq!(texts("2021-11-29", "2026-11-27"), ["2022", "2023", "2024", "2025", "2026"]);
        assert_eq!(texts("2024-10-15", "2025-03-03"), ["Nov", "Dec", "2025", "Feb", "Mar"]);
        assert_eq!(texts("1926-01-04", "2026-01-05").len(), 25);
    }

    #[test]
    fn a_value_names_its_day_and_the_events_up_to_it() {
        let chart = PriceChart {
            title: "Raw close",
            currency: "USD",
            lines: vec![line("A", &[("2024-03-04", 5_010), ("2024-03-07", 5_120)])],
            ex_dates: vec![(day("2024-03-06"), "ex-date 6 Mar 2024".to_owned())],
            splits: vec![],
        };
        let drawn = chart.render().expect("a chart").into_string();
        for part in [
            "<title>4 Mar 2024: 50.10 USD</title>",
            "<title>7 Mar 2024: 51.20 USD · ex-date 6 Mar 2024</title>",
            "class=\"newest\"",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }

    #[test]
    fn compared_prices_are_changes_since_the_first_common_day() {
        let lines = [
            line("A", &[("2024-01-02", 1_000), ("2024-01-03", 2_000), ("2024-01-04", 2_500)]),
            line("B", &[("2024-01-03", 400), ("2024-01-04", 300)]),
            line("NONE", &[]),
        ];
        let changes = to_changes(&lines).expect("changes");
        let newest: Vec<(&str, String)> =
            changes.iter().map(|line| (line.name.as_str(), line.closes[1].close.to_string())).collect();
        assert_eq!(newest, [("A", "25".to_owned()), ("B", "-25".to_owned())]);
        assert_eq!(value_on(&changes[1], day("2024-01-03")), Some(Decimal::ZERO));
        assert_eq!(value_on(&changes[1], day("2024-01-02")), None);
    }

    #[test]
    fn a_thin_line_keeps_its_ends_and_its_peaks() {
        let mut points: Vec<Point> = (0..1_000).map(|x| (Decimal::from(x), units(100))).collect();
        points[437].1 = units(900);
        let thin = thin_line(&points, 50);
        assert_eq!((thin.len(), thin[0], thin[49]), (50, (units(0), units(100)), (units(999), units(100))));
        assert!(thin.contains(&(units(437), units(900))), "{thin:?}");
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0), "{thin:?}");
    }

    #[test]
    fn a_short_line_stays() {
        let points = [(units(0), units(1)), (units(1), units(2))];
        assert_eq!(thin_line(&points, 10), points);
        assert_eq!(thin_line(&[], 10), []);
    }
}
