//! Price chart: closing prices with marks for ex-dates and splits, a text alternative and a table.

use std::fmt::Write;

use chrono::{Datelike, NaiveDate};
use market::decimal::ExactDecimal;
use maud::{Markup, html};
use serde::Deserialize;

use crate::dashboard::market::chart::axis::Axis;
use crate::dashboard::market::chart::thinning::{Point, thin_line};
use crate::dashboard::market::values::render_date;
use crate::dashboard::view::table::{Number, Text, data_table};

/// Width and height of the drawing, in SVG units. The browser stretches the drawing.
const WIDTH: i64 = 2_000;
const HEIGHT: i64 = 600;
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
        let point = |close: &Close| (x(close.date), HEIGHT - axis.place(close.close.0, HEIGHT));
        let line = path_of(&thin_line(&self.closes.iter().map(point).collect::<Vec<_>>(), POINTS));
        let is_within = |day: &NaiveDate| first.date <= *day && *day <= last.date;
        let marks: String =
            self.ex_dates.iter().filter(|day| is_within(day)).fold(String::new(), |mut marks, day| {
                let _ = write!(marks, "M{} {}v{MARK}", x(*day), HEIGHT - MARK);
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
                    svg role="img" aria-label=(label) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
                        @for number in 0..lines { line.grid x1="0" x2=(WIDTH) y1=(number * HEIGHT / lines) y2=(number * HEIGHT / lines) {} }
                        @for (day, ratio) in &splits { line.split x1=(x(*day)) x2=(x(*day)) y1="0" y2=(HEIGHT) { title { "Split " (ratio) " on " (day) } } }
                        path.ex d=(marks) {}
                        path.line d=(line) {}
                        line.axis x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
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
