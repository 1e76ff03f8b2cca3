//! Figures of a security: groups, titles and units. Each figure links to the page with its explanation.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, render_value};

/// Kind of value of a figure.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Percent,
    /// Amount in the currency of the dividends.
    Amount,
    Years,
    Plain,
    Date,
}

/// Figure: field of the API response, title, and kind of value.
type Figure = (&'static str, &'static str, Kind);

const GROUPS: [(&str, &[Figure]); 5] = [
    (
        "Yield",
        &[
            ("dividend_yield", "Headline yield", Kind::Percent),
            ("yield_ttm", "Yield of the last 12 months", Kind::Percent),
            ("yield_forward", "Forward yield", Kind::Percent),
            ("yield_5y_avg", "Mean yield of 5 years", Kind::Percent),
            ("dps_ttm", "Paid in the last 12 months", Kind::Amount),
            ("dps_forward", "Indicated for the next 12 months", Kind::Amount),
        ],
    ),
    (
        "Growth",
        &[
            ("growth_1y", "Last year", Kind::Percent),
            ("growth_3y", "A year over 3 years", Kind::Percent),
            ("growth_5y", "A year over 5 years", Kind::Percent),
            ("growth_10y", "A year over 10 years", Kind::Percent),
            ("latest_increase_percent", "Latest raise", Kind::Percent),
            ("latest_increase_date", "Ex-date of the latest raise", Kind::Date),
        ],
    ),
    (
        "Streak",
        &[
            ("increase_streak_years", "Raised every year for", Kind::Years),
            ("payment_streak_years", "Paid every year for", Kind::Years),
            ("last_cut_date", "Ex-date of the latest cut", Kind::Date),
            ("cuts_10y", "Cuts in 10 years", Kind::Plain),
            ("first_payment_date", "First ex-date known", Kind::Date),
        ],
    ),
    (
        "Payout and safety",
        &[
            ("payout_ratio", "Payout ratio", Kind::Percent),
            ("fcf_payout_ratio", "Payout of free cash flow", Kind::Percent),
            ("dividend_cover", "Dividend cover", Kind::Plain),
            ("safety", "Safety", Kind::Plain),
            ("yield_trap_risk", "Risk of a yield trap", Kind::Plain),
            ("chowder_number", "Chowder number", Kind::Plain),
        ],
    ),
    (
        "Return and risk",
        &[
            ("total_return_1y", "Total return of 1 year", Kind::Percent),
            ("total_return_5y", "Total return of 5 years", Kind::Percent),
            ("volatility_1y", "Volatility of 1 year", Kind::Percent),
            ("beta_5y", "Beta of 5 years", Kind::Plain),
        ],
    ),
];

/// Title of a figure; `None` if no page shows it.
pub(crate) fn title_of(name: &str) -> Option<&'static str> {
    let mut figures = GROUPS.iter().flat_map(|(_, figures)| *figures);
    figures.find(|(known, ..)| *known == name).map(|(_, title, _)| *title)
}

/// Renders the value of a figure with its unit.
pub(crate) fn show_figure(name: &str, metrics: &Value) -> Markup {
    let mut figures = GROUPS.iter().flat_map(|(_, figures)| *figures);
    let kind = figures.find(|(known, ..)| *known == name).map_or(Kind::Plain, |(.., kind)| *kind);
    let currency = metrics["currency"].as_str().unwrap_or_default();
    let unit = match kind {
        Kind::Percent => Unit::Percent,
        Kind::Amount => Unit::Money(currency),
        Kind::Years => Unit::Years,
        Kind::Plain => Unit::Plain,
        Kind::Date => Unit::Date,
    };
    render_value(&metrics[name], unit)
}

/// Renders all figures, each with a link to its explanation.
pub(crate) fn render_figures(symbol: &str, metrics: &Value) -> Markup {
    html! {
        div.columns {
            @for (group, figures) in GROUPS {
                div {
                    h3 { (group) }
                    dl {
                        @for (name, title, _) in figures {
                            div { dt { (title) } dd id=(name) { (show_figure(name, metrics)) " " (why_link(symbol, name, title)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Link to the explanation of a figure.
fn why_link(symbol: &str, name: &str, title: &str) -> Markup {
    html! { a.why href={ "/s/" (encode(symbol)) "/why/" (name) } rel="nofollow" { "why" span.unseen { ": " (title) } } }
}
