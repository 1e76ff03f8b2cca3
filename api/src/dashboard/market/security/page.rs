//! `/s/{symbol}`: page of one security.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use chrono::NaiveDate;
use futures::try_join;
use maud::{Markup, html};
use serde_json::Value;

use crate::auth::tier::Tier;
use crate::concurrency::low_priority::run_low_priority;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult, encode};
use crate::dashboard::market::block::{Block, Choice, render_choices};
use crate::dashboard::market::chart::price_chart::{Close, PriceChart};
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::security::calls::{ADJUSTMENTS, PriceChoice, RANGES, SecurityBlock};
use crate::dashboard::market::security::data_quality::render_quality;
use crate::dashboard::market::security::dividend_blocks::{render_rows, render_years};
use crate::dashboard::market::security::figures::render_figures;
use crate::dashboard::market::security::tables::{holders_table, holdings_table, splits_table};
use crate::dashboard::market::values::{Unit, digits, humanize, render_value, rows_of, str_of};
use crate::dashboard::view::layout::Section;
use crate::routes::stocks::metrics::EXPLAIN_TIER;

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
    html! {
        h1 { (name) " " span.tag { (symbol) } }
        p.lead { (humanize(str_of(&profile["type"]))) @for word in words { " · " (word) } }
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
