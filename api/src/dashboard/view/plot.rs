//! Frame of a chart as SVG: value axis, labels, and the text of each value. Shapes are stretched to the width of the page;
//! texts are not.
//!
//! A browser shows the text of a value as a tooltip. `script.js` also shows it for touch and for the arrow keys.

use maud::{Markup, html};
use rust_decimal::{Decimal, RoundingStrategy};

use super::{format_amount, format_decimal};

/// Width and height of the drawing, in SVG units. The browser stretches the drawing.
pub(crate) const WIDTH: Decimal = units(2_000);
pub(crate) const HEIGHT: Decimal = units(600);

/// Length of a drawing, in SVG units. Coordinates are whole numbers.
pub(crate) const fn units(number: u32) -> Decimal {
    Decimal::from_parts(number, 0, 0, false, 0)
}

/// Label below the drawing.
#[derive(Debug)]
pub(crate) struct Tick {
    pub(crate) x: Decimal,
    pub(crate) text: String,
    /// True if narrow screens leave the label out.
    pub(crate) is_minor: bool,
    /// True if a vertical line marks the place.
    pub(crate) has_line: bool,
}

/// Value of the chart: a vertical strip around `x`, and its text.
#[derive(Debug)]
pub(crate) struct PlotValue {
    pub(crate) x: Decimal,
    pub(crate) text: String,
}

/// Text inside the drawing, above a point.
#[derive(Debug)]
pub(crate) struct PlotText {
    pub(crate) class: &'static str,
    pub(crate) x: Decimal,
    pub(crate) y: Decimal,
    pub(crate) text: String,
}

/// Content of a chart.
#[derive(Debug)]
pub(crate) struct Plot<'a> {
    /// Text alternative for screen readers.
    pub(crate) label: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) axis: Axis,
    /// Shapes of the drawing, [`WIDTH`] wide and [`HEIGHT`] high.
    pub(crate) shapes: Markup,
    pub(crate) texts: Vec<PlotText>,
    pub(crate) ticks: Vec<Tick>,
    /// Values from left to right. The last one is shown at first.
    pub(crate) values: Vec<PlotValue>,
}

impl Plot<'_> {
    pub(crate) fn render(&self) -> Markup {
        let labels = self.axis.labels();
        let lines = labels.len().max(2) - 1;
        let line_y = |number: usize| (Decimal::from(number) * HEIGHT / Decimal::from(lines)).trunc();
        let strip = (WIDTH / Decimal::from(self.values.len().max(1))).trunc().max(Decimal::ONE);
        let half = (strip / Decimal::TWO).trunc();
        html! {
            p.reading aria-hidden="true" { (self.values.last().map_or("", |value| value.text.as_str())) }
            p.unit aria-hidden="true" { (self.unit) }
            div.plot {
                ol.scale aria-hidden="true" { @for value in labels { li { (format_decimal(value, value.scale(), value.scale())) } } }
                svg.values role="img" aria-label=(self.label) {
                    svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
                        @for number in 0..lines { line.grid x1="0" x2=(WIDTH) y1=(line_y(number)) y2=(line_y(number)) {} }
                        @for tick in self.ticks.iter().filter(|tick| tick.has_line) { line.grid x1=(tick.x) x2=(tick.x) y1="0" y2=(HEIGHT) {} }
                        (self.shapes)
                        line.axis x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                        @for value in &self.values { rect.hit x=(value.x - half) y="0" width=(strip) height=(HEIGHT) { title { (value.text) } } }
                    }
                    @for text in &self.texts { text class=(text.class) x=(share(text.x, WIDTH)) y=(share(text.y, HEIGHT)) dy="-.4em" { (text.text) } }
                    @for tick in &self.ticks { text.tick.minor[tick.is_minor] x=(share(tick.x, WIDTH)) y="100%" dy="1.5em" { (tick.text) } }
                }
            }
        }
    }
}

/// Part of a length, in percent.
fn share(part: Decimal, whole: Decimal) -> String {
    format!("{:.2}%", (part * Decimal::ONE_HUNDRED / whole).trunc_with_scale(2))
}

/// Share of a bar's step that the bar fills, in percent.
const BAR_PERCENT: Decimal = units(66);
/// Maximum number of bars on a narrow screen, and number of the newest bars that it shows of a longer chart.
const MOST_NARROW: usize = 12;
const NARROW: usize = 10;
/// Number of letters that fit next to each other on a narrow screen.
const NARROW_LETTERS: usize = 40;
/// Maximum number of bars with a label each. Longer charts label every second bar.
const MOST_LABELS: usize = 32;

/// Bar of one period: a solid part, and a light part on top of it.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) solid: Decimal,
    pub(crate) light: Decimal,
}

/// Stacked bar chart. `solid` and `light` are the names of the two parts of a bar. `unit` is the unit of the amounts,
/// `note` describes the amounts, and `label` is the text alternative for screen readers.
#[derive(Debug)]
pub(crate) struct BarChart<'a> {
    pub(crate) solid: &'a str,
    pub(crate) light: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) note: &'a str,
    pub(crate) label: &'a str,
    pub(crate) bars: &'a [Bar],
}

impl BarChart<'_> {
    /// Renders the chart. Of a long chart, narrow screens show the newest bars only.
    pub(crate) fn render(&self) -> Markup {
        self.render_until(self.bars.len())
    }

    /// Renders the chart. Of a long chart, narrow screens show the bars before the index `end` only.
    pub(crate) fn render_until(&self, end: usize) -> Markup {
        let end = end.clamp(NARROW.min(self.bars.len()), self.bars.len());
        html! {
            @if self.bars.len() > MOST_NARROW {
                (self.figure("on-wide", self.bars)) (self.figure("on-phone", &self.bars[end - NARROW..end]))
            } @else {
                (self.figure("", self.bars))
            }
        }
    }

    fn figure(&self, class: &str, bars: &[Bar]) -> Markup {
        let most = bars.iter().map(|bar| bar.solid + bar.light).max().unwrap_or_default();
        let axis = Axis::around(Decimal::ZERO, most);
        let count = Decimal::from(bars.len().max(1));
        let width = (WIDTH / count * BAR_PERCENT / Decimal::ONE_HUNDRED).trunc();
        let center = |number: usize| (Decimal::from(2 * number + 1) * WIDTH / (Decimal::TWO * count)).trunc();
        let numbered = || bars.iter().enumerate();
        let most_short = format_short(most);
        let text = |(number, bar): (usize, &Bar)| PlotText {
            class: if fits_narrow(bars, &most_short) || number.is_multiple_of(2) {
                "value"
            } else {
                "value minor"
            },
            x: center(number),
            y: HEIGHT - axis.place(bar.solid + bar.light, HEIGHT),
            text: format_short(bar.solid + bar.light),
        };
        let tick = |(number, bar): (usize, &Bar)| Tick {
            x: center(number),
            text: bar.label.clone(),
            is_minor: !fits_narrow(bars, &bar.label) && !number.is_multiple_of(2),
            has_line: false,
        };
        let is_labelled = |(number, _): &(usize, &Bar)| {
            bars.len() <= MOST_LABELS || (bars.len() - 1 - number).is_multiple_of(2)
        };
        let value = |(number, bar)| PlotValue { x: center(number), text: self.describe(bar) };
        let unit = format!("{} {}", self.unit, self.note);
        let plot = Plot {
            label: self.label,
            unit: unit.trim(),
            axis,
            shapes: html! { @for (number, bar) in numbered() { (render_bar(center(number), width, bar, &axis)) } },
            texts: numbered().filter(is_labelled).map(text).filter(|text| text.y < HEIGHT).collect(),
            ticks: numbered().filter(is_labelled).map(tick).collect(),
            values: numbered().map(value).collect(),
        };
        html! {
            figure.chart.(class) {
                ul.legend aria-hidden="true" { li { span.dot.answered {} (self.solid) } li { span.dot.light {} (self.light) } }
                (plot.render())
            }
        }
    }

    /// Text of a bar: its exact amount, and the part with the name `light` if the bar has both parts.
    fn describe(&self, bar: &Bar) -> String {
        let Self { unit, light, .. } = self;
        let total = (bar.solid + bar.light).normalize();
        let text = format!("{}: {total} {unit}", bar.label);
        match bar.solid.is_zero() || bar.light.is_zero() {
            true => text,
            false => format!("{text}, of it {}: {}", light.to_lowercase(), bar.light.normalize()),
        }
    }
}

/// True if each bar can have a text of this length on a narrow screen. Otherwise every second text is left out.
fn fits_narrow(bars: &[Bar], text: &str) -> bool {
    bars.len() * text.len() <= NARROW_LETTERS
}

/// Formats an amount above a bar in at most three or four digits.
fn format_short(amount: Decimal) -> String {
    let size = amount.abs();
    let places = [(100, 0), (10, 1)].into_iter().find(|(least, _)| size >= Decimal::from(*least));
    match places {
        Some((_, places)) => format_decimal(amount, places, places),
        None if size >= Decimal::new(1, 1) || size.is_zero() => format_decimal(amount, 2, 2),
        None => {
            let rounded = amount.round_sf_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
            format_amount(rounded.unwrap_or(amount), 4)
        }
    }
}

fn render_bar(center: Decimal, width: Decimal, bar: &Bar, axis: &Axis) -> Markup {
    let solid = axis.place(bar.solid, HEIGHT);
    let whole = axis.place(bar.solid + bar.light, HEIGHT);
    let x = center - (width / Decimal::TWO).trunc();
    html! {
        @if solid > Decimal::ZERO { rect.answered x=(x) y=(HEIGHT - solid) width=(width) height=(solid) {} }
        @if whole > solid { rect.light x=(x) y=(HEIGHT - whole) width=(width) height=(whole - solid) {} }
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
    pub(crate) fn place(&self, value: Decimal, length: Decimal) -> Decimal {
        ((value - self.low) * length / (self.high - self.low)).round().clamp(Decimal::ZERO, length)
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
        let places = [0, 5, 10].map(|value| axis.place(Decimal::from(value), HEIGHT));
        assert_eq!(places, [units(0), units(300), HEIGHT]);
    }

    #[test]
    fn values_above_bars_are_short() {
        for (exact, shown) in
            [("3.8736", "3.87"), ("12.345", "12.3"), ("1444.4", "1,444"), ("0.01453", "0.015"), ("0", "0.00")]
        {
            assert_eq!(format_short(exact.parse().expect("a number")), shown, "{exact}");
        }
    }

    #[test]
    fn a_long_chart_has_a_short_form_for_narrow_screens() {
        let bar = |year: i32| Bar {
            label: year.to_string(),
            solid: Decimal::from(year - 1996),
            light: Decimal::ZERO,
        };
        let chart = |bars: &[Bar]| {
            let chart =
                BarChart { solid: "Complete", light: "Incomplete", unit: "USD", note: "", label: "", bars };
            chart.render().into_string()
        };
        let years: Vec<Bar> = (1997..=2026).map(bar).collect();
        let (wide, slim) =
            chart(&years).split_once("on-phone").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two");
        assert!(wide.contains("<title>1997: 1 USD</title>") && wide.contains(">1998</text>"), "{wide}");
        assert!(!slim.contains("2016") && slim.contains("<title>2017: 21 USD</title>"), "{slim}");
        assert!(!chart(&years[..12]).contains("on-phone"));
    }
}
