//! `/s/{symbol}`: page of one security, and its blocks as CSV files.

mod blocks;
pub(crate) mod figures;
mod prices;

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::Response;
use futures::future::try_join_all;
use futures::try_join;
use market::text_enum;
use maud::{Markup, html};
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketError, MarketResult, encode, in_currency, with_parameter};
use super::block::{Block, render_currencies, render_listings};
use super::chart::Close;
use super::quality::render_sources;
use super::reader::{MarketReader, PageContent, as_file};
use super::values::{Unit, exchange_name, format_value, humanize, render_value, rows_of, str_of};
use crate::auth::Tier;
use crate::concurrency::run_low_priority;
use crate::dashboard::view::layout::Section;
use crate::routes::stocks::metrics::EXPLAIN_TIER;
use blocks::{
    change, holders_table, holdings_table, render_figures_by_quarter, render_growth, render_quality,
    render_rows, render_years, splits_table,
};
use figures::render_figures;
use prices::{Comparison, PriceBlock, PriceChoice, compare_call};

/// Blocks whose data is read for every page.
const BLOCKS: [SecurityBlock; 8] = [
    SecurityBlock::Profile,
    SecurityBlock::Quote,
    SecurityBlock::Metrics,
    SecurityBlock::Dividends,
    SecurityBlock::Splits,
    SecurityBlock::EtfHolders,
    SecurityBlock::Growth,
    SecurityBlock::ByQuarter,
];

/// API responses from which the page is rendered.
struct Answers {
    /// Data by block. Only a fund has holdings.
    blocks: BTreeMap<SecurityBlock, Value>,
    closes: Vec<Close>,
    /// Growth of an amount without reinvested dividends.
    cash_growth: Value,
    /// Sources on which the security rests.
    sources: Value,
    /// Compared securities; `None` if the reader compares nothing.
    compared: Option<Comparison>,
}

pub(crate) async fn show_security(
    reader: MarketReader,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(symbol)) = path else { return reader.respond_error(MarketError::nothing_here()) };
    let (depth, tier) = (reader.depth_years(), reader.tier);
    let choice = PriceChoice::read(&reader.parameters(), reader.app.today(), depth);
    let target = format!("/s/{}{}", encode(&symbol), choice.query());
    let reader = &reader;
    reader
        .respond(target, |calls| {
            let (symbol, choice) = (symbol.clone(), choice.clone());
            async move {
                let answers = Box::pin(Answers::read(&calls, &symbol, &choice)).await;
                let answers = answers.map_err(|error| error.for_symbol(&symbol))?;
                let canonical = str_of(&answers.of(SecurityBlock::Profile)["symbol"]);
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

impl Answers {
    async fn read(calls: &ApiCalls, symbol: &str, choice: &PriceChoice) -> MarketResult<Self> {
        let read = |block: SecurityBlock| async move {
            MarketResult::Ok((block, calls.data::<Value>(block.call(symbol, choice)).await?))
        };
        let cash = format!("{}&reinvest=false", SecurityBlock::Growth.call(symbol, choice));
        let (blocks, closes, cash_growth, sources, compared) = try_join!(
            try_join_all(BLOCKS.map(read)),
            calls.data(SecurityBlock::Prices.call(symbol, choice)),
            calls.data(cash),
            calls.data(sources_call(symbol)),
            Comparison::read(calls, symbol, choice),
        )?;
        let mut answers =
            Self { blocks: blocks.into_iter().collect(), closes, cash_growth, sources, compared };
        if str_of(&answers.of(SecurityBlock::Profile)["type"]) == "etf" {
            answers.blocks.extend([read(SecurityBlock::Holdings).await?]);
        }
        Ok(answers)
    }

    /// Data of a block; null if it was not read.
    fn of(&self, block: SecurityBlock) -> &Value {
        self.blocks.get(&block).unwrap_or(&Value::Null)
    }
}

fn content(answers: &Answers, symbol: &str, choice: &PriceChoice, (depth, tier): (i32, Tier)) -> PageContent {
    let (profile, metrics) = (answers.of(SecurityBlock::Profile), answers.of(SecurityBlock::Metrics));
    let currency = str_of(&profile["currency"]);
    let (dividend_rows, splits) =
        (rows_of(answers.of(SecurityBlock::Dividends)), rows_of(answers.of(SecurityBlock::Splits)));
    let holders = rows_of(answers.of(SecurityBlock::EtfHolders));
    let name = str_of(&profile["name"]);
    let call = |block: SecurityBlock| block.call(symbol, choice);
    let file = |block: SecurityBlock| format!("/s/{}/{block}.csv", encode(symbol));
    let price_block = PriceBlock {
        symbol,
        currency,
        choice,
        depth_years: depth,
        closes: &answers.closes,
        compared: answers.compared.as_ref().map_or(&[], |compared| &compared.lines),
        dividends: dividend_rows,
        splits,
    };
    let growth = render_growth(answers.of(SecurityBlock::Growth), &answers.cash_growth, currency);
    let by_quarter =
        render_figures_by_quarter(answers.of(SecurityBlock::ByQuarter), &metrics["yield_5y_avg"]);
    let body = html! {
        (heading(answers, symbol, name))
        (Block { id: "summary", title: "At a glance", call: &call(SecurityBlock::Profile), csv: &file(SecurityBlock::Profile), body: summary(answers) }.render())
        (Block { id: "prices", title: "Price", call: &call(SecurityBlock::Prices), csv: &format!("{}{}", file(SecurityBlock::Prices), choice.query()), body: price_block.render() }.render())
        @if let Some(compared) = &answers.compared {
            (Block { id: "comparison", title: "Comparison", call: &compare_call(symbol, choice), csv: "", body: compared.render() }.render())
        }
        @if let Some(growth) = &growth {
            (Block { id: "growth", title: "Growth of 10,000", call: &call(SecurityBlock::Growth), csv: &file(SecurityBlock::Growth), body: growth.clone() }.render())
        }
        (Block { id: "years", title: "Dividends by year", call: &call(SecurityBlock::Years), csv: &file(SecurityBlock::Years), body: render_years(metrics) }.render())
        @if let Some(by_quarter) = &by_quarter {
            (Block { id: "by-quarter", title: "Yield and payout ratio", call: &call(SecurityBlock::ByQuarter), csv: &file(SecurityBlock::ByQuarter), body: by_quarter.clone() }.render())
        }
        (Block { id: "dividends", title: "Dividends", call: &call(SecurityBlock::Dividends), csv: &in_currency(&file(SecurityBlock::Dividends), &choice.currency), body: dividends(answers, symbol, choice) }.render())
        (Block { id: "figures", title: "Figures", call: &call(SecurityBlock::Metrics), csv: &file(SecurityBlock::Metrics), body: render_figures(symbol, metrics, tier >= EXPLAIN_TIER) }.render())
        @if let Some(holdings) = answers.blocks.get(&SecurityBlock::Holdings) {
            (Block { id: "holdings", title: "Largest holdings", call: &call(SecurityBlock::Holdings), csv: &file(SecurityBlock::Holdings), body: holdings_table(rows_of(holdings)) }.render())
        }
        @if !holders.is_empty() {
            (Block { id: "etf-holders", title: "Funds that hold it", call: &call(SecurityBlock::EtfHolders), csv: &file(SecurityBlock::EtfHolders), body: holders_table(holders) }.render())
        }
        @if !splits.is_empty() {
            (Block { id: "splits", title: "Splits", call: &call(SecurityBlock::Splits), csv: &file(SecurityBlock::Splits), body: splits_table(splits) }.render())
        }
        (Block { id: "sources", title: "Sources and licences", call: &sources_call(symbol), csv: "", body: render_sources(rows_of(&answers.sources)) }.render())
        (Block { id: "quality", title: "Quality of the data", call: &format!("{}?fields=flags,quarantined", call(SecurityBlock::Metrics)), csv: "", body: render_quality(profile, metrics) }.render())
    };
    PageContent {
        title: format!("{name} ({symbol}): dividends, yield, history"),
        description: description(answers, symbol, name),
        canonical: format!("/s/{}", encode(symbol)),
        section: Section::Security,
        body,
    }
}

/// API call for the sources on which a security rests.
fn sources_call(symbol: &str) -> String {
    format!("/v1/sources?symbols={}", encode(symbol))
}

/// Renders the dividends, with a form that converts them to another currency.
fn dividends(answers: &Answers, symbol: &str, choice: &PriceChoice) -> Markup {
    html! {
        form.compare action={ "/s/" (encode(symbol)) "#dividends" } method="get" {
            (choice.hidden_fields())
            @if !choice.compared.is_empty() { input type="hidden" name="with" value=(choice.compared.join(",")); }
            (render_currencies(&choice.currency))
            button.second type="submit" { "Convert" }
        }
        (render_rows(rows_of(answers.of(SecurityBlock::Dividends))))
    }
}

fn heading(answers: &Answers, symbol: &str, name: &str) -> Markup {
    let profile = answers.of(SecurityBlock::Profile);
    let words = ["sector", "industry", "country"].map(|field| str_of(&profile[field]));
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let listings = rows_of(&profile["listings"]);
    html! {
        h1 { (name) " " span.tag { (symbol) } }
        (quote_line(answers.of(SecurityBlock::Quote)))
        p.muted { (humanize(str_of(&profile["type"]))) @for word in words { " · " (word) } }
        @if listings.len() > 1 {
            details { summary { (listings.len()) " listings" } (render_listings(listings)) }
        }
        @if profile["is_active"] == false {
            p.notice { "Delisted" @if !profile["delisted_on"].is_null() { " on " (render_value(&profile["delisted_on"], Unit::Date)) } ". Figures end there." }
        }
    }
}

/// Extract of the page, for other pages: quote, and dividends by year.
pub(crate) fn render_extract(quote: &Value, metrics: &Value) -> Markup {
    html! { (quote_line(quote)) (render_years(metrics)) }
}

/// Price with its change, and the other figures of the quote.
fn quote_line(quote: &Value) -> Markup {
    let currency = str_of(&quote["currency"]);
    let value = |name: &str, unit| render_value(&quote[name], unit);
    let money = |name: &str| value(name, Unit::Money(""));
    let mic = str_of(&quote["exchange"]);
    html! {
        p.quote {
            strong id="price" { (value("price", Unit::Money(currency))) } " "
            (change(&quote["change_percent"])) " " span.muted { "(" (money("change")) ") on " (value("price_date", Unit::Date)) }
        }
        dl.line {
            div { dt { "Day" } dd { (money("day_low")) " – " (money("day_high")) } }
            div { dt { "52 weeks" } dd { (money("year_low")) " – " (money("year_high")) } }
            div { dt { "Market value" } dd { (value("market_cap", Unit::Large(currency))) } }
            div { dt { "P/E" } dd { (value("pe_ratio", Unit::Ratio)) } }
            div { dt { "Volume" } dd { (value("volume", Unit::Plain)) } }
            div { dt { "Exchange" } dd { @if mic.is_empty() { "–" } @else { abbr title=(mic) { (exchange_name(mic)) } } } }
        }
    }
}

/// Renders the key facts, for example yield and next payment. Below each fact is a note, for example its date.
fn summary(answers: &Answers) -> Markup {
    let (profile, metrics) = (answers.of(SecurityBlock::Profile), answers.of(SecurityBlock::Metrics));
    let dividends = &profile["dividends"];
    let paid_in = str_of(&profile["dividend_currency"]);
    let next = &dividends["next"];
    let last = &dividends["last"];
    html! {
        dl.facts {
            div { dt { "Dividend yield" } dd id="yield" { (render_value(&profile["dividend_yield"], Unit::Percent)) } dd.hint { (yield_basis(profile)) } }
            div { dt { "Dividend a year" } dd id="annual" { (render_value(&profile["annual_dividend"], Unit::PerShare(paid_in))) } dd.hint { (render_value(&profile["frequency"], Unit::Plain)) } }
            div { dt { "Next ex-date" } dd id="next-ex-date" { (render_value(&next["ex_date"], Unit::Date)) } dd.hint { (origin(next)) } }
            div { dt { "Next payment" } dd id="next-amount" { (render_value(&next["amount"], Unit::PerShare(paid_in))) } dd.hint { (render_value(&next["payment_date"], Unit::Date)) } }
            div { dt { "Last dividend" } dd id="last-amount" { (render_value(&last["amount"], Unit::PerShare(paid_in))) } dd.hint { "ex " (render_value(&last["ex_date"], Unit::Date)) } }
            div { dt { "Raised every year for" } dd id="streak" { (render_value(&metrics["increase_streak_years"], Unit::Years)) @if metrics["streak_lower_bound"] == true { " or more" } } dd.hint { (humanize(str_of(&metrics["tier"]))) } }
            div { dt { "Safety" } dd id="safety-label" { (render_value(&metrics["safety"], Unit::Plain)) } dd.hint { "payout " (render_value(&metrics["payout_ratio"], Unit::Percent)) } }
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

/// Description of the page for search engines, in one sentence.
fn description(answers: &Answers, symbol: &str, name: &str) -> String {
    let (profile, metrics) = (answers.of(SecurityBlock::Profile), answers.of(SecurityBlock::Metrics));
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
    reader.respond_with(read_csv(&reader, path).await)
}

async fn read_csv(
    reader: &MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> MarketResult<Response> {
    let Path((symbol, file)) = path?;
    let name = file.strip_suffix(".csv").ok_or_else(MarketError::nothing_here)?;
    let choice = PriceChoice::read(&reader.parameters(), reader.app.today(), reader.depth_years());
    let block: SecurityBlock = name.parse().map_err(|_| MarketError::nothing_here())?;
    let calls = match block {
        SecurityBlock::EtfHolders | SecurityBlock::Holdings => reader.file_calls().await?,
        _ => reader.calls().await?,
    };
    // Check that the symbol exists: some calls respond with an empty list for an unknown symbol.
    let profile = calls.json(&SecurityBlock::Profile.call(&symbol, &choice)).await;
    profile.map_err(|error| error.for_symbol(&symbol))?;
    let response = calls.respond(&with_parameter(&block.call(&symbol, &choice), "format=csv")).await?;
    match response.status() {
        StatusCode::OK => Ok(as_file(response, &file_name(&symbol, name))),
        status if status.is_client_error() => Err(MarketError::nothing_here()),
        status => Err(MarketError::Unavailable(status.to_string())),
    }
}

/// Name of the CSV file. In the symbol, all characters except ASCII letters and digits become hyphens.
fn file_name(symbol: &str, block: &str) -> String {
    let symbol: String = symbol.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{symbol}-{block}.csv")
}

text_enum! {
    /// Block of the page of a security. The text of a variant is the name of the block's CSV file, without extension.
    pub enum SecurityBlock {
        Profile = "profile", Quote = "quote", Metrics = "metrics", Years = "years", Dividends = "dividends", Splits = "splits",
        Holdings = "holdings", EtfHolders = "etf-holders", Prices = "prices", Growth = "growth",
        ByQuarter = "by-quarter",
    }
}

impl SecurityBlock {
    /// Path and query of the API call that returns the rows of the block.
    pub(crate) fn call(self, symbol: &str, choice: &PriceChoice) -> String {
        let id = encode(symbol);
        match self {
            Self::Profile => format!("/v1/stocks/{id}"),
            Self::Quote => format!("/v1/stocks/{id}/quote"),
            Self::Metrics => format!("/v1/stocks/{id}/metrics"),
            Self::Years => format!("/v1/stocks/{id}/metrics?fields=annual_totals"),
            Self::Dividends => {
                let call = format!("/v1/dividends/history?symbols={id}&include_projected=true&limit=1000");
                in_currency(&call, &choice.currency)
            }
            Self::Splits => format!("/v1/stocks/{id}/splits?limit=200"),
            Self::Holdings => format!("/v1/etfs/{id}/holdings?limit=25"),
            Self::EtfHolders => format!("/v1/stocks/{id}/etf-holders?limit=25"),
            Self::Prices => choice.prices_call(symbol),
            Self::Growth => format!("/v1/stocks/{id}/growth?start_date={}", choice.since),
            Self::ByQuarter => {
                let fields = "dividend_yield,payout_ratio";
                format!(
                    "/v1/stocks/{id}/metrics/history?interval=quarter&fields={fields}&start_date={}",
                    choice.since
                )
            }
        }
    }
}
