//! `/s/{symbol}`: page of one security, and its blocks as CSV files.

mod blocks;
pub(crate) mod figures;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::NaiveDate;
use futures::try_join;
use market::text_enum;
use maud::{Markup, html};
use serde_json::Value;

use crate::auth::tier::Tier;
use crate::concurrency::tasks::run_low_priority;
use crate::dashboard::form::Form;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult, encode, with_parameter};
use crate::dashboard::market::block::{Block, Choice, render_choices, render_listings};
use crate::dashboard::market::chart::{Close, PriceChart};
use crate::dashboard::market::page::{PageContent, as_file};
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::values::{Unit, format_value, humanize, render_value, rows_of, str_of};
use crate::dashboard::view::layout::Section;
use crate::routes::stocks::metrics::EXPLAIN_TIER;
use blocks::{holders_table, holdings_table, render_quality, render_rows, render_years, splits_table};
use figures::render_figures;

/// API responses from which the page is rendered.
struct Answers {
    profile: Value,
    metrics: Value,
    dividends: Value,
    splits: Value,
    /// Funds that hold the security.
    holders: Value,
    /// Holdings of a fund; `None` if the security is not a fund.
    holdings: Option<Value>,
    closes: Vec<Close>,
}

pub(crate) async fn show_security(
    reader: MarketReader,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(symbol)) = path else {
        return reader.respond_error(MarketError::NotFound("Nothing is at this address".to_owned())).await;
    };
    let (depth, tier) = (reader.depth_years(), reader.tier);
    let choice = PriceChoice::read(&reader.parameters(), depth);
    let target = format!("/s/{}{}", encode(&symbol), choice.query());
    let reader = &reader;
    reader
        .respond(target, |calls| {
            let symbol = symbol.clone();
            async move {
                let answers = read(&calls, &symbol, &choice).await?;
                let canonical = str_of(&answers.profile["symbol"]);
                if canonical != symbol {
                    return Err(MarketError::Redirect(
                        reader.with_parameters(&format!("/s/{}", encode(canonical))),
                    ));
                }
                // This page is the largest, so its rendering takes the most CPU time. At low priority, it does not
                // delay requests of API clients.
                Ok(run_low_priority(move || content(&answers, &symbol, &choice, (depth, tier))).await?)
            }
        })
        .await
}

async fn read(calls: &ApiCalls, symbol: &str, choice: &PriceChoice) -> MarketResult<Answers> {
    let data = |block: SecurityBlock| calls.data::<Value>(block.call(symbol, choice));
    let (profile, metrics, dividends, splits, holders, closes) = try_join!(
        data(SecurityBlock::Profile),
        data(SecurityBlock::Metrics),
        data(SecurityBlock::Dividends),
        data(SecurityBlock::Splits),
        data(SecurityBlock::EtfHolders),
        calls.data(SecurityBlock::Prices.call(symbol, choice)),
    )?;
    let holdings = match str_of(&profile["type"]) {
        "etf" => Some(data(SecurityBlock::Holdings).await?),
        _ => None,
    };
    Ok(Answers { profile, metrics, dividends, splits, holders, holdings, closes })
}

fn content(answers: &Answers, symbol: &str, choice: &PriceChoice, (depth, tier): (i32, Tier)) -> PageContent {
    let name = str_of(&answers.profile["name"]);
    let call = |block: SecurityBlock| block.call(symbol, choice);
    let file = |block: SecurityBlock| format!("/s/{}/{block}.csv", encode(symbol));
    let body = html! {
        (heading(answers, symbol, name))
        (Block { id: "summary", title: "At a glance", call: &call(SecurityBlock::Profile), csv: &file(SecurityBlock::Profile), body: summary(answers) }.render())
        (Block { id: "prices", title: "Price", call: &call(SecurityBlock::Prices), csv: &format!("{}{}", file(SecurityBlock::Prices), choice.query()), body: prices(answers, symbol, choice, depth) }.render())
        (Block { id: "years", title: "Dividends by year", call: &call(SecurityBlock::Years), csv: &file(SecurityBlock::Years), body: render_years(&answers.metrics) }.render())
        (Block { id: "dividends", title: "Dividends", call: &call(SecurityBlock::Dividends), csv: &file(SecurityBlock::Dividends), body: render_rows(rows_of(&answers.dividends)) }.render())
        (Block { id: "figures", title: "Figures", call: &call(SecurityBlock::Metrics), csv: &file(SecurityBlock::Metrics), body: render_figures(symbol, &answers.metrics, tier >= EXPLAIN_TIER) }.render())
        @if let Some(holdings) = &answers.holdings {
            (Block { id: "holdings", title: "Largest holdings", call: &call(SecurityBlock::Holdings), csv: &file(SecurityBlock::Holdings), body: holdings_table(rows_of(holdings)) }.render())
        }
        @if !rows_of(&answers.holders).is_empty() {
            (Block { id: "etf-holders", title: "Funds that hold it", call: &call(SecurityBlock::EtfHolders), csv: &file(SecurityBlock::EtfHolders), body: holders_table(rows_of(&answers.holders)) }.render())
        }
        @if !rows_of(&answers.splits).is_empty() {
            (Block { id: "splits", title: "Splits", call: &call(SecurityBlock::Splits), csv: &file(SecurityBlock::Splits), body: splits_table(rows_of(&answers.splits)) }.render())
        }
        (Block { id: "quality", title: "Quality of the data", call: &format!("{}?fields=flags,quarantined", call(SecurityBlock::Metrics)), csv: "", body: render_quality(&answers.metrics) }.render())
    };
    PageContent {
        title: format!("{name} ({symbol}): dividends, yield, history"),
        description: description(answers, symbol, name),
        canonical: format!("/s/{}", encode(symbol)),
        section: Section::Security,
        body,
    }
}

fn heading(answers: &Answers, symbol: &str, name: &str) -> Markup {
    let profile = &answers.profile;
    let words = ["exchange", "sector", "industry", "country"].map(|field| str_of(&profile[field]));
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let listings = rows_of(&profile["listings"]);
    html! {
        h1 { (name) " " span.tag { (symbol) } }
        p.lead { (humanize(str_of(&profile["type"]))) @for word in words { " · " (word) } }
        @if listings.len() > 1 {
            details { summary { (listings.len()) " listings" } (render_listings(listings)) }
        }
        @if profile["is_active"] == false {
            p.notice { "Delisted" @if !profile["delisted_on"].is_null() { " on " (render_value(&profile["delisted_on"], Unit::Date)) } ". Figures end there." }
        }
    }
}

/// Renders the key facts, for example price, yield and next payment. Below each fact is a note, for example its date.
fn summary(answers: &Answers) -> Markup {
    let (profile, metrics) = (&answers.profile, &answers.metrics);
    let dividends = &profile["dividends"];
    let paid_in = str_of(&profile["dividend_currency"]);
    let next = &dividends["next"];
    let last = &dividends["last"];
    html! {
        dl.facts {
            div { dt { "Price" } dd id="price" { (render_value(&profile["price"], Unit::Money(str_of(&profile["currency"])))) } dd.hint { (render_value(&profile["price_date"], Unit::Date)) } }
            div { dt { "Dividend yield" } dd id="yield" { (render_value(&profile["dividend_yield"], Unit::Percent)) } dd.hint { (yield_basis(profile)) } }
            div { dt { "Dividend a year" } dd id="annual" { (render_value(&profile["annual_dividend"], Unit::PerShare(paid_in))) } dd.hint { (render_value(&profile["frequency"], Unit::Plain)) } }
            div { dt { "Next ex-date" } dd id="next-ex-date" { (render_value(&next["ex_date"], Unit::Date)) } dd.hint { (origin(next)) } }
            div { dt { "Next payment" } dd id="next-amount" { (render_value(&next["amount"], Unit::PerShare(paid_in))) } dd.hint { (render_value(&next["payment_date"], Unit::Date)) } }
            div { dt { "Last dividend" } dd id="last-amount" { (render_value(&last["amount"], Unit::PerShare(paid_in))) } dd.hint { "ex " (render_value(&last["ex_date"], Unit::Date)) } }
            div { dt { "Raised every year for" } dd id="streak" { (render_value(&metrics["increase_streak_years"], Unit::Years)) @if metrics["streak_lower_bound"] == true { " or more" } } dd.hint { (humanize(str_of(&metrics["tier"]))) } }
            div { dt { "Safety" } dd id="safety" { (render_value(&metrics["safety"], Unit::Plain)) } dd.hint { "payout " (render_value(&metrics["payout_ratio"], Unit::Percent)) } }
        }
    }
}

fn yield_basis(profile: &Value) -> &'static str {
    match str_of(&profile["yield_basis"]) {
        "forward" => "indicated for 12 months",
        "ttm" => "paid in 12 months",
        _ => "",
    }
}

/// Origin of the next dividend: declared or estimated.
fn origin(next: &Value) -> &'static str {
    match str_of(&next["status"]) {
        "declared" => "declared",
        "projected" => "estimated",
        _ => "",
    }
}

fn prices(answers: &Answers, symbol: &str, choice: &PriceChoice, depth: i32) -> Markup {
    let address = |range, adjustment| {
        let choice = PriceChoice { range, adjustment, ..*choice };
        format!("/s/{}{}#prices", encode(symbol), choice.query())
    };
    let ranges = RANGES.map(|(range, title, years)| Choice {
        title,
        address: (years <= depth).then(|| address(range, choice.adjustment)),
        is_current: range == choice.range,
        hint: "A plan with a longer history includes this",
    });
    let adjustments = ADJUSTMENTS.map(|(adjustment, title)| {
        let address = address(choice.range, adjustment);
        Choice::of_every_plan(title, address, adjustment == choice.adjustment)
    });
    let day = |value: &Value| str_of(value).parse::<NaiveDate>().ok();
    let paid = rows_of(&answers.dividends).iter().filter(|row| str_of(&row["status"]) != "projected");
    let ex_dates: Vec<NaiveDate> = paid.filter_map(|row| day(&row["ex_date"])).collect();
    let splits = rows_of(&answers.splits).iter();
    let splits = splits.filter_map(|row| Some((day(&row["ex_date"])?, str_of(&row["text"]))));
    let splits: Vec<(NaiveDate, &str)> = splits.collect();
    let chart = PriceChart {
        title: choice.title,
        currency: str_of(&answers.profile["currency"]),
        closes: &answers.closes,
        ex_dates: &ex_dates,
        splits: &splits,
    };
    html! {
        div.heading { (render_choices("Range", &ranges)) (render_choices("Adjustment", &adjustments)) }
        @match chart.render() { Some(chart) => (chart), None => p { "No prices are known for this range." } }
    }
}

/// Description of the page for search engines, in one sentence.
fn description(answers: &Answers, symbol: &str, name: &str) -> String {
    let (profile, metrics) = (&answers.profile, &answers.metrics);
    let mut parts = vec![format!("{name} ({symbol})")];
    if let Some(percent) = format_value(&profile["dividend_yield"], Unit::Percent) {
        parts.push(format!("dividend yield {percent}"));
    }
    let paid_in = Unit::PerShare(str_of(&profile["dividend_currency"]));
    if let Some(amount) = format_value(&profile["annual_dividend"], paid_in) {
        parts.push(format!("{amount} a year"));
    }
    if let Some(years) = metrics["increase_streak_years"].as_i64().filter(|years| *years > 0) {
        parts.push(format!("{years} years of increases"));
    }
    parts.join(", ")
}

pub(crate) async fn show_csv(
    reader: MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match read_csv(&reader, path).await {
        Ok(response) => response,
        Err(error) => reader.respond_error(error).await,
    }
}

async fn read_csv(
    reader: &MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> MarketResult<Response> {
    let nothing = || MarketError::NotFound("Nothing is at this address".to_owned());
    let Path((symbol, file)) = path.map_err(|_| nothing())?;
    let name = file.strip_suffix(".csv").ok_or_else(nothing)?;
    let choice = PriceChoice::read(&reader.parameters(), reader.depth_years());
    let block: SecurityBlock = name.parse().map_err(|_| nothing())?;
    let calls = reader.calls();
    // Check that the symbol exists: some calls respond with an empty list for an unknown symbol.
    calls.json(&SecurityBlock::Profile.call(&symbol, &choice)).await?;
    let response = calls.respond(&with_parameter(&block.call(&symbol, &choice), "format=csv")).await?;
    match response.status() {
        StatusCode::OK => Ok(as_file(response, &file_name(&symbol, name))),
        status if status.is_client_error() => Err(nothing()),
        status => Err(MarketError::Unavailable(status.to_string())),
    }
}

/// Name of the CSV file. In the symbol, all characters except ASCII letters and digits become hyphens.
fn file_name(symbol: &str, block: &str) -> String {
    let symbol: String = symbol.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{symbol}-{block}.csv")
}

/// Ranges of the price chart: value of `range`, title, and required years of history (0 for none).
const RANGES: [(&str, &str, i32); 4] =
    [("1y", "1 year", 1), ("5y", "5 years", 5), ("10y", "10 years", 10), ("max", "All", 0)];
/// Adjustments of the price chart, each with the value of the parameter `prices` and a title.
const ADJUSTMENTS: [(&str, &str); 3] =
    [("split", "Split-adjusted close"), ("raw", "Raw close"), ("all", "Total return")];
/// Default range, if the reader may see 5 years of history. Otherwise the default is `1y`, or `max` if the reader may
/// see less than one year.
const FIRST_RANGE: &str = "5y";

/// Chosen range and adjustment of the price chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PriceChoice {
    pub(crate) range: &'static str,
    pub(crate) adjustment: &'static str,
    /// Title of the adjustment.
    pub(crate) title: &'static str,
}

impl PriceChoice {
    /// Reads the choice from the query. An unknown range, or one beyond the reader's history, becomes the default.
    pub(crate) fn read(parameters: &Form, depth_years: i32) -> Self {
        let included = RANGES.iter().filter(|(.., years)| *years <= depth_years).map(|(range, ..)| *range);
        let included: Vec<&str> = included.collect();
        let named = |wanted: &str| included.iter().copied().find(|range| *range == wanted);
        let range = named(parameters.text("range")).or(named(FIRST_RANGE)).or(named("1y")).unwrap_or("max");
        let adjustment = ADJUSTMENTS.iter().find(|(name, _)| *name == parameters.text("prices"));
        let (adjustment, title) = *adjustment.unwrap_or(&ADJUSTMENTS[0]);
        Self { range, adjustment, title }
    }

    /// Query of the page for this choice.
    pub(crate) fn query(&self) -> String {
        format!("?range={}&prices={}", self.range, self.adjustment)
    }
}

text_enum! {
    /// Block of the page of a security. The text of a variant is the name of the block's CSV file, without extension.
    pub enum SecurityBlock {
        Profile = "profile", Metrics = "metrics", Years = "years", Dividends = "dividends", Splits = "splits",
        Holdings = "holdings", EtfHolders = "etf-holders", Prices = "prices",
    }
}

impl SecurityBlock {
    /// Path and query of the API call that returns the rows of the block.
    pub(crate) fn call(self, symbol: &str, choice: &PriceChoice) -> String {
        let symbol = encode(symbol);
        match self {
            Self::Profile => format!("/v1/stocks/{symbol}"),
            Self::Metrics => format!("/v1/stocks/{symbol}/metrics"),
            Self::Years => format!("/v1/stocks/{symbol}/metrics?fields=annual_totals"),
            Self::Dividends => {
                format!("/v1/dividends/history?symbols={symbol}&include_projected=true&limit=1000")
            }
            Self::Splits => format!("/v1/stocks/{symbol}/splits?limit=200"),
            Self::Holdings => format!("/v1/etfs/{symbol}/holdings?limit=25"),
            Self::EtfHolders => format!("/v1/stocks/{symbol}/etf-holders?limit=25"),
            Self::Prices => prices_call(&symbol, choice),
        }
    }
}

/// API call for the closing prices of the chart. For the range `max`, it requests weekly prices, so that they fit into
/// one response.
fn prices_call(symbol: &str, choice: &PriceChoice) -> String {
    let (interval, limit) = match choice.range {
        "1y" => ("daily", 400),
        "5y" => ("daily", 1_500),
        "10y" => ("daily", 3_000),
        _ => ("weekly", 5_000),
    };
    format!(
        "/v1/prices/{symbol}?range={}&interval={interval}&adjustment={}&fields=date,close&sort=date.asc&limit={limit}",
        choice.range, choice.adjustment
    )
}
