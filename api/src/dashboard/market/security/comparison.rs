//! Comparison of a security with others on its page: prices in the chart, and a table of figures.

use futures::future::try_join_all;
use maud::{Markup, html};
use serde_json::Value;

use super::figures::Figure;
use super::prices::PriceChoice;
use crate::dashboard::market::api_calls::{ApiCalls, MarketResult, encode, in_currency};
use crate::dashboard::market::chart::PriceLine;
use crate::dashboard::market::values::{Unit, render_converted, render_value, rows_of, str_of};
use crate::dashboard::view::layout::{Heading, Number, Text, data_table};

/// Compared figures of the metrics. The titles and units are those of the page's figures.
const FIGURES: [&str; 9] = [
    "dividend_yield",
    "dps_forward",
    "growth_5y",
    "increase_streak_years",
    "payout_ratio",
    "safety",
    "total_return_1y",
    "total_return_5y",
    "volatility_1y",
];

/// Responses for the compared securities.
pub(crate) struct Comparison {
    /// Body of the response of `/v1/compare`. The first row is the security of the page.
    answer: Value,
    /// Prices of the other securities.
    pub(crate) lines: Vec<PriceLine>,
}

/// API call for the figures of the security and the compared securities.
pub(crate) fn compare_call(symbol: &str, choice: &PriceChoice) -> String {
    let symbols = format!("{},{}", encode(symbol), encode(&choice.compared.join(",")));
    in_currency(&format!("/v1/compare?symbols={symbols}&sections=quote,metrics"), &choice.currency)
}

impl Comparison {
    /// Reads the comparison; `None` if the reader compares nothing.
    pub(crate) async fn read(
        calls: &ApiCalls,
        symbol: &str,
        choice: &PriceChoice,
    ) -> MarketResult<Option<Self>> {
        if choice.compared.is_empty() {
            return Ok(None);
        }
        let answer = calls.json(&compare_call(symbol, choice)).await?;
        let others = rows_of(&answer["data"]).iter().skip(1).map(|row| str_of(&row["symbol"]).to_owned());
        let lines = others.map(async |name: String| {
            let closes = calls.data(choice.prices_call(&name)).await?;
            MarketResult::Ok(PriceLine { name, closes })
        });
        let lines = try_join_all(lines).await?;
        Ok(Some(Self { answer, lines }))
    }

    /// Renders the figures side by side. The best value of a figure is marked.
    pub(crate) fn render(&self) -> Markup {
        let rows = rows_of(&self.answer["data"]);
        let symbols = rows.iter().map(|row| Number(str_of(&row["symbol"])));
        let headings: Vec<Heading<'_>> = [Text("Figure")].into_iter().chain(symbols).collect();
        let best = |figure: &str, row: &Value| self.answer["meta"]["best"][figure] == row["symbol"];
        let line = |name: &str, title: &str, render: &dyn Fn(&Value) -> Markup| {
            html! { tr { th scope="row" { (title) } @for row in rows { td.number.best[best(name, row)] { (render(row)) } } } }
        };
        let ratio = |row: &Value| render_value(&row["quote"]["pe_ratio"], Unit::Ratio);
        let price = |row: &Value| render_amount(row, "quote", "price", Unit::Money);
        let market_cap = |row: &Value| render_amount(row, "quote", "market_cap", Unit::Large);
        html! {
            @for missing in rows_of(&self.answer["meta"]["missing"]) { p.notice { (str_of(missing)) " is not a known symbol." } }
            (data_table("Table: comparison", &headings, html! {
                (line("price", "Price", &price))
                @for figure in FIGURES.iter().filter_map(|name| Figure::find(name)) {
                    @if figure.is_amount() { (line(figure.name, figure.title, &|row| render_amount(row, "metrics", figure.name, Unit::PerShare))) }
                    @else { (line(figure.name, figure.title, &|row| figure.render(&row["metrics"]))) }
                }
                (line("pe_ratio", "P/E", &ratio))
                (line("market_cap", "Market value", &market_cap))
            }))
            p.hint { "The best value of a figure is bold." }
        }
    }
}

/// Renders an amount of a compared security, in the currency that the reader chose.
fn render_amount<'a>(row: &'a Value, section: &str, name: &str, unit: fn(&'a str) -> Unit<'a>) -> Markup {
    let of_section = &row[section];
    render_converted(&of_section[name], str_of(&of_section["currency"]), row["converted"].get(name), unit)
}
