//! `/s/{symbol}`: page of one security.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use chrono::NaiveDate;
use futures::try_join;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::concurrency::cpu_pool::run_low_priority;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, encode};
use crate::dashboard::market::block::{Block, Choice, render_choices};
use crate::dashboard::market::chart::price_chart::{Close, PriceChart};
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::security::calls::{ADJUSTMENTS, PriceChoice, RANGES, SecurityCalls};
use crate::dashboard::market::security::data_quality::render_quality;
use crate::dashboard::market::security::dividend_blocks::{render_rows, render_years};
use crate::dashboard::market::security::figures::render_figures;
use crate::dashboard::market::security::tables::{holders_table, holdings_table, splits_table};
use crate::dashboard::market::values::{Unit, digits, humanize, render_value, str_of};
use crate::dashboard::view::layout::Section;

/// API responses from which the page is rendered.
struct Answers {
    profile: Value,
    metrics: Value,
    dividends: Vec<Value>,
    splits: Vec<Value>,
    /// Funds that hold the security.
    holders: Vec<Value>,
    /// Holdings of a fund; `None` if the security is not a fund.
    holdings: Option<Vec<Value>>,
    closes: Vec<Close>,
}

/// Prices as `/v1/prices/{symbol}` serves them.
#[derive(Debug, Deserialize)]
struct Prices {
    data: Vec<Close>,
    meta: PricesMeta,
}

/// Data version of the prices.
#[derive(Debug, Deserialize)]
struct PricesMeta {
    data_version: String,
}

pub(crate) async fn show_security(
    reader: MarketReader,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(symbol)) = path else {
        return reader.respond_error(MarketError::NotFound("Nothing is at this address".to_owned())).await;
    };
    let depth = reader.depth_years();
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
                // This page is the largest. It is rendered at low priority, so that requests of API clients come first.
                Ok(run_low_priority(move || content(&answers, &symbol, &choice, depth)).await?)
            }
        })
        .await
}

async fn read(calls: &ApiCalls, symbol: &str, choice: &PriceChoice) -> Result<Answers, MarketError> {
    let paths = SecurityCalls::of(symbol);
    let (profile, metrics, dividends, splits) =
        (paths.profile(), paths.metrics(), paths.dividends(), paths.splits());
    let (holders, prices) = (paths.etf_holders(), paths.prices(choice));
    let (mut profile, mut metrics, mut dividends, mut splits, mut holders, prices) = try_join!(
        calls.json(&profile),
        calls.json(&metrics),
        calls.json(&dividends),
        calls.json(&splits),
        calls.json(&holders),
        calls.read::<Prices>(&prices),
    )?;
    calls.note_version(&prices.meta.data_version);
    let profile = profile["data"].take();
    let holdings = match str_of(&profile["type"]) {
        "etf" => Some(rows_of(calls.json(&paths.holdings()).await?["data"].take())),
        _ => None,
    };
    Ok(Answers {
        holdings,
        holders: rows_of(holders["data"].take()),
        profile,
        metrics: metrics["data"].take(),
        dividends: rows_of(dividends["data"].take()),
        splits: rows_of(splits["data"].take()),
        closes: prices.data,
    })
}

fn rows_of(data: Value) -> Vec<Value> {
    match data {
        Value::Array(rows) => rows,
        _ => vec![],
    }
}

fn content(answers: &Answers, symbol: &str, choice: &PriceChoice, depth: i32) -> PageContent {
    let name = str_of(&answers.profile["name"]);
    let paths = SecurityCalls::of(symbol);
    let file = |block: &str| format!("/s/{}/{block}.csv", encode(symbol));
    let body = html! {
        (heading(answers, symbol, name))
        (Block { id: "summary", title: "At a glance", call: &paths.profile(), csv: &file("profile"), body: summary(answers) }.render())
        (Block { id: "prices", title: "Price", call: &paths.prices(choice), csv: &format!("{}{}", file("prices"), choice.query()), body: prices(answers, symbol, choice, depth) }.render())
        (Block { id: "years", title: "Dividends by year", call: &paths.years(), csv: &file("years"), body: render_years(&answers.metrics) }.render())
        (Block { id: "dividends", title: "Dividends", call: &paths.dividends(), csv: &file("dividends"), body: render_rows(&answers.dividends) }.render())
        (Block { id: "figures", title: "Figures", call: &paths.metrics(), csv: &file("metrics"), body: render_figures(symbol, &answers.metrics) }.render())
        @if let Some(holdings) = &answers.holdings {
            (Block { id: "holdings", title: "Largest holdings", call: &paths.holdings(), csv: &file("holdings"), body: holdings_table(holdings) }.render())
        }
        @if !answers.holders.is_empty() {
            (Block { id: "etf-holders", title: "Funds that hold it", call: &paths.etf_holders(), csv: &file("etf-holders"), body: holders_table(&answers.holders) }.render())
        }
        @if !answers.splits.is_empty() {
            (Block { id: "splits", title: "Splits", call: &paths.splits(), csv: &file("splits"), body: splits_table(&answers.splits) }.render())
        }
        (Block { id: "quality", title: "Quality of the data", call: &format!("{}?fields=flags,quarantined", paths.metrics()), csv: "", body: render_quality(&answers.metrics) }.render())
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
    html! {
        h1 { (name) " " span.tag { (symbol) } }
        p.lead { (humanize(str_of(&profile["type"]))) @for word in words { " · " (word) } }
        @if profile["is_active"] == false {
            p.notice { "Delisted" @if !profile["delisted_on"].is_null() { " on " (render_value(&profile["delisted_on"], Unit::Date)) } ". Figures end there." }
        }
    }
}

/// Renders price, yield and next payment, each with its date or origin.
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
            div { dt { "Dividend a year" } dd id="annual" { (render_value(&profile["annual_dividend"], Unit::Money(paid_in))) } dd.hint { (render_value(&profile["frequency"], Unit::Plain)) } }
            div { dt { "Next ex-date" } dd id="next-ex-date" { (render_value(&next["ex_date"], Unit::Date)) } dd.hint { (origin(next)) } }
            div { dt { "Next payment" } dd id="next-amount" { (render_value(&next["amount"], Unit::Money(paid_in))) } dd.hint { (render_value(&next["payment_date"], Unit::Date)) } }
            div { dt { "Last dividend" } dd id="last-amount" { (render_value(&last["amount"], Unit::Money(paid_in))) } dd.hint { "ex " (render_value(&last["ex_date"], Unit::Date)) } }
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
    let address = |range: &str, adjustment: &str| {
        format!(
            "/s/{}{}#prices",
            encode(symbol),
            PriceChoice { range: range_name(range), adjustment: adjustment_name(adjustment), title: "" }
                .query()
        )
    };
    let ranges = RANGES.map(|(range, title, years)| Choice {
        title,
        address: (years <= depth).then(|| address(range, choice.adjustment)),
        is_current: range == choice.range,
        hint: "A plan with a longer history includes this",
    });
    let adjustments = ADJUSTMENTS.map(|(adjustment, title)| Choice {
        title,
        address: Some(address(choice.range, adjustment)),
        is_current: adjustment == choice.adjustment,
        hint: "",
    });
    let day = |value: &Value| str_of(value).parse::<NaiveDate>().ok();
    let paid = answers.dividends.iter().filter(|row| str_of(&row["status"]) != "projected");
    let ex_dates: Vec<NaiveDate> = paid.filter_map(|row| day(&row["ex_date"])).collect();
    let splits: Vec<(NaiveDate, &str)> =
        answers.splits.iter().filter_map(|row| Some((day(&row["ex_date"])?, str_of(&row["text"])))).collect();
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

fn range_name(range: &str) -> &'static str {
    RANGES.iter().find(|(name, ..)| *name == range).map_or("", |(name, ..)| *name)
}

fn adjustment_name(adjustment: &str) -> &'static str {
    ADJUSTMENTS.iter().find(|(name, _)| *name == adjustment).map_or("", |(name, _)| *name)
}

/// Description of the page for search engines, in one sentence.
fn description(answers: &Answers, symbol: &str, name: &str) -> String {
    let (profile, metrics) = (&answers.profile, &answers.metrics);
    let mut parts = vec![format!("{name} ({symbol})")];
    if let Some(percent) = digits(&profile["dividend_yield"]) {
        parts.push(format!("dividend yield {percent} %"));
    }
    if let Some(amount) = digits(&profile["annual_dividend"]) {
        parts.push(format!("{amount} {} a year", str_of(&profile["dividend_currency"])));
    }
    if let Some(years) = metrics["increase_streak_years"].as_i64().filter(|years| *years > 0) {
        parts.push(format!("{years} years of increases"));
    }
    parts.join(", ")
}
