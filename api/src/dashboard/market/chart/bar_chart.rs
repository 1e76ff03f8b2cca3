//! Stacked bar chart of amounts by period. The page shows the same amounts in a table.

use maud::{Markup, html};
use rust_decimal::Decimal;

use crate::dashboard::market::chart::axis::Axis;

const HEIGHT: i64 = 160;
/// Width of a bar with the space after it, in units of the drawing.
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
                    svg role="img" aria-label=(self.label) viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" {
                        @for number in 0..lines { line.grid x1="0" x2=(width) y1=(number * HEIGHT / lines) y2=(number * HEIGHT / lines) {} }
                        @for (number, bar) in (0..).zip(self.bars) { (render_bar(number * STEP + (STEP - BAR) / 2, bar, &axis)) }
                        line.axis x1="0" x2=(width) y1=(HEIGHT) y2=(HEIGHT) {}
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
    let solid = axis.place(bar.solid, HEIGHT);
    let whole = axis.place(bar.solid + bar.light, HEIGHT);
    html! {
        @if solid > 0 { rect.answered x=(x) y=(HEIGHT - solid) width=(BAR) height=(solid) {} }
        @if whole > solid { rect.light x=(x) y=(HEIGHT - whole) width=(BAR) height=(whole - solid) {} }
    }
}
