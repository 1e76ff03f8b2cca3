//! Price chart of the page of a security: chosen range, adjustment, compared securities and currency.
//!
//! Comparison of a security with others on its page: prices in the chart, and a table of figures.

use chrono::NaiveDate;
use futures::future::try_join_all;
use market::symbol::Symbol;
use maud::{Markup, html};
use serde_json::Value;

use super::figures::Figure;
use crate::auth::years_before;
use crate::dashboard::form::Form;
use crate::dashboard::market::api_calls::{ApiCalls, MarketResult, encode, in_currency};
use crate::dashboard::market::block::{Choice, read_currency, render_choices};
use crate::dashboard::market::chart::{Close, PriceChart, PriceLine};
use crate::dashboard::market::values::{Unit, format_value, render_converted, render_value, rows_of, str_of};
use crate::dashboard::view::layout::{Heading, Number, Text, data_table};

/// Ranges of the price chart: value of `range`, title, and required years of history (0 for none).
const RANGES: [(&str, &str, i32); 4] =
    [("1y", "1 year", 1), ("5y", "5 years", 5), ("10y", "10 years", 10), ("max", "All", 0)];
/// Adjustments of the price chart, each with the value of the parameter `prices` and a title.
const ADJUSTMENTS: [(&str, &str); 3] =
    [("split", "Split-adjusted close"), ("raw", "Raw close"), ("all", "Total return")];
/// Default range, if the reader may see 5 years of history. Otherwise the default is `1y`, or `max` if the reader may
/// see less than one year.
const FIRST_RANGE: &str = "5y";
/// Maximum number of years of the figures over time.
const YEARS_OF_FIGURES: i32 = 10;
/// Maximum number of securities with which a security is compared.
const MOST_COMPARED: usize = 4;
/// Maximum length of the parameter `with`, in characters.
const MOST_TEXT: usize = 120;

/// Chosen range and adjustment of the price chart, the compared securities, and the currency of dividends.
#[derive(Debug, Clone)]
pub(crate) struct PriceChoice {
    pub(crate) range: &'static str,
    pub(crate) adjustment: &'static str,
    /// Title of the adjustment.
    pub(crate) title: &'static str,
    /// Symbols of the compared securities, as the reader wrote them.
    pub(crate) compared: Vec<String>,
    /// Currency to which dividends and compared amounts are converted; empty if they are shown as declared.
    pub(crate) currency: String,
    /// First day of the figures over time.
    pub(crate) since: NaiveDate,
}

impl PriceChoice {
    /// Reads the choice from the query. An unknown range, or one beyond the reader's history, becomes the default.
    pub(crate) fn read(parameters: &Form, today: NaiveDate, depth_years: i32) -> Self {
        let included = RANGES.iter().filter(|(.., years)| *years <= depth_years).map(|(range, ..)| *range);
        let included: Vec<&str> = included.collect();
        let named = |wanted: &str| included.iter().copied().find(|range| *range == wanted);
        let range = named(parameters.text("range")).or(named(FIRST_RANGE)).or(named("1y")).unwrap_or("max");
        let adjustment = ADJUSTMENTS.iter().find(|(name, _)| *name == parameters.text("prices"));
        let (adjustment, title) = *adjustment.unwrap_or(&ADJUSTMENTS[0]);
        let text: String = parameters.text("with").to_uppercase().chars().take(MOST_TEXT).collect();
        let mut compared: Vec<String> = Vec::new();
        for symbol in text.split(|c: char| c.is_whitespace() || c == ',' || c == ';') {
            let is_new = Symbol::parse(symbol).is_ok() && !compared.iter().any(|known| known == symbol);
            if is_new && compared.len() < MOST_COMPARED {
                compared.push(symbol.to_owned());
            }
        }
        let since = years_before(today, depth_years.min(YEARS_OF_FIGURES));
        let currency = read_currency(parameters.text("currency"));
        Self { range, adjustment, title, compared, currency, since }
    }

    /// Query of the page for this choice.
    pub(crate) fn query(&self) -> String {
        let Self { range, adjustment, compared, currency, .. } = self;
        let with = if compared.is_empty() {
            String::new()
        } else {
            format!("&with={}", encode(&compared.join(",")))
        };
        in_currency(&format!("?range={range}&prices={adjustment}{with}"), currency)
    }

    /// Fields of a form that keep the range and the adjustment.
    pub(crate) fn hidden_fields(&self) -> Markup {
        html! {
            input type="hidden" name="range" value=(self.range);
            input type="hidden" name="prices" value=(self.adjustment);
        }
    }

    /// API call for the closing prices of the chart. For the range `max`, it requests weekly prices, so that they fit
    /// into one response.
    pub(crate) fn prices_call(&self, symbol: &str) -> String {
        let (interval, limit) = match self.range {
            "1y" => ("daily", 400),
            "5y" => ("daily", 1_500),
            "10y" => ("daily", 3_000),
            _ => ("weekly", 5_000),
        };
        format!(
            "/v1/prices/{}?range={}&interval={interval}&adjustment={}&fields=date,close&sort=date.asc&limit={limit}",
            encode(symbol),
            self.range,
            self.adjustment
        )
    }
}

/// Content of the price block.
#[derive(Debug)]
pub(crate) struct PriceBlock<'a> {
    pub(crate) symbol: &'a str,
    pub(crate) currency: &'a str,
    pub(crate) choice: &'a PriceChoice,
    /// Number of years of history that the reader may see.
    pub(crate) depth_years: i32,
    pub(crate) closes: &'a [Close],
    pub(crate) compared: &'a [PriceLine],
    pub(crate) dividends: &'a [Value],
    pub(crate) splits: &'a [Value],
}

impl PriceBlock<'_> {
    /// Renders the choices, the chart and the form for a comparison.
    pub(crate) fn render(&self) -> Markup {
        let Self { symbol, choice, .. } = *self;
        let address = |range, adjustment| {
            let choice = PriceChoice { range, adjustment, ..choice.clone() };
            format!("/s/{}{}#prices", encode(symbol), choice.query())
        };
        let ranges = RANGES.map(|(range, title, years)| Choice {
            title,
            address: (years <= self.depth_years).then(|| address(range, choice.adjustment)),
            is_current: range == choice.range,
            hint: "A plan with a longer history includes this",
        });
        let adjustments = ADJUSTMENTS.map(|(adjustment, title)| {
            let address = address(choice.range, adjustment);
            Choice::of_every_plan(title, address, adjustment == choice.adjustment)
        });
        let name = if self.compared.is_empty() { choice.title } else { symbol };
        let main = PriceLine { name: name.to_owned(), closes: self.closes.to_vec() };
        let chart = PriceChart {
            title: choice.title,
            currency: self.currency,
            lines: [main].into_iter().chain(self.compared.iter().cloned()).collect(),
            ex_dates: ex_dates(self.dividends),
            splits: splits(self.splits),
        };
        html! {
            div.heading { (render_choices("Range", &ranges)) (render_choices("Adjustment", &adjustments)) }
            @match chart.render() { Some(chart) => (chart), None => p { "No prices are known for this range." } }
            (compare_form(symbol, choice))
        }
    }
}

fn compare_form(symbol: &str, choice: &PriceChoice) -> Markup {
    html! {
        form.compare action={ "/s/" (encode(symbol)) "#prices" } method="get" {
            (choice.hidden_fields())
            @if !choice.currency.is_empty() { input type="hidden" name="currency" value=(choice.currency); }
            label for="with" { "Compare with up to " (MOST_COMPARED) " symbols" }
            input id="with" name="with" maxlength=(MOST_TEXT) value=(choice.compared.join(", ")) placeholder="PEP, MCD" autocapitalize="characters" autocomplete="off" spellcheck="false";
            button.second type="submit" { "Compare" }
        }
    }
}

/// Ex-dates of the dividends that are not estimated, each with its amount.
fn ex_dates(dividends: &[Value]) -> Vec<(NaiveDate, String)> {
    let paid = dividends.iter().filter(|row| str_of(&row["status"]) != "projected");
    let described = paid.filter_map(|row| {
        let day: NaiveDate = str_of(&row["ex_date"]).parse().ok()?;
        let amount = format_value(&row["amount"], Unit::PerShare(str_of(&row["currency"])))?;
        Some((day, format!("ex-date {}: {amount}", day.format("%-d %b %Y"))))
    });
    described.collect()
}

fn splits(splits: &[Value]) -> Vec<(NaiveDate, String)> {
    let described = splits.iter().filter_map(|row| {
        let day: NaiveDate = str_of(&row["ex_date"]).parse().ok()?;
        Some((day, format!("split {} on {}", str_of(&row["text"]), day.format("%-d %b %Y"))))
    });
    described.collect()
}

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
