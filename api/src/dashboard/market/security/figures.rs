//! Groups, titles and units of a security's figures, such as the dividend yield. Each figure links to its explanation.

use std::sync::LazyLock;

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, render_value, str_of};

/// Figures in display order. Each line has a group, a field of the API response, a title, and a kind of value.
const TABLE: &str = include_str!("figures.csv");
static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| TABLE.lines().filter_map(Figure::parse).collect());

/// Figure of a security.
#[derive(Debug)]
pub(crate) struct Figure {
    group: &'static str,
    /// Field of the API response.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Kind of value: `percent`, `amount`, `years`, `date` or `plain`. An amount is in the currency of the dividends.
    kind: &'static str,
}

impl Figure {
    fn parse(line: &'static str) -> Option<Self> {
        let mut cells = line.split(',');
        let mut next = || cells.next();
        Some(Self { group: next()?, name: next()?, title: next()?, kind: next()? })
    }

    /// Figure with this field name; `None` if the table of figures does not list the name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|figure| figure.name == name)
    }

    /// Renders the value with its unit.
    pub(crate) fn render(&self, metrics: &Value) -> Markup {
        let unit = match self.kind {
            "percent" => Unit::Percent,
            "amount" => Unit::Money(str_of(&metrics["currency"])),
            "years" => Unit::Years,
            "date" => Unit::Date,
            _ => Unit::Plain,
        };
        render_value(&metrics[self.name], unit)
    }
}

/// Renders all figures. If `has_explanations` is true, each has a link to its explanation.
pub(crate) fn render_figures(symbol: &str, metrics: &Value, has_explanations: bool) -> Markup {
    html! {
        div.columns {
            @for figures in FIGURES.chunk_by(|one, next| one.group == next.group) {
                div {
                    h3 { (figures[0].group) }
                    dl {
                        @for figure in figures {
                            div { dt { (figure.title) } dd id=(figure.name) { (figure.render(metrics)) @if has_explanations { " " (why_link(symbol, figure)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Link to the explanation of a figure.
fn why_link(symbol: &str, figure: &Figure) -> Markup {
    html! { a.why href={ "/s/" (encode(symbol)) "/why/" (figure.name) } rel="nofollow" { "why" span.unseen { ": " (figure.title) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_figure_of_a_known_kind() {
        assert_eq!(FIGURES.len(), TABLE.lines().count());
        for figure in FIGURES.iter() {
            assert!(["percent", "amount", "years", "date", "plain"].contains(&figure.kind), "{figure:?}");
        }
    }
}
