//! Ways to a security: `/search` for readers, and `/sitemap.xml` for search engines.

use std::fmt::Write;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use market::identity::SecurityAddress;
use maud::html;
use rust_decimal::Decimal;
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketError, MarketResult, encode};
use super::block::{Block, render_results};
use super::reader::{MarketReader, PageContent};
use super::values::{rows_of, str_of};
use crate::dashboard::view::layout::Section;

/// Values of the field `match` of a search result. These values mean that the search text identifies one security. If
/// the first result has such a value, the search redirects to the page of the security.
const EXACT: [&str; 2] = ["symbol", "former_symbol"];

pub(crate) async fn show_search(reader: MarketReader) -> Response {
    let q: String = reader.parameters().text("q").chars().take(64).collect();
    let target = format!("/search?q={}", encode(&q));
    reader.respond(target, |calls| search(calls, &q)).await
}

async fn search(calls: ApiCalls, q: &str) -> MarketResult<PageContent> {
    // An identifier belongs to one security or to several listings of it. The page of the security says which.
    if SecurityAddress::parse(q).is_ok_and(|address| address.as_symbol().is_none()) {
        return Err(MarketError::Redirect(format!("/s/{}", encode(q.trim()))));
    }
    let call = format!("/v1/search?q={}&include_inactive=true", encode(q));
    let found = if q.is_empty() { Value::Null } else { calls.json(&call).await? };
    let rows = rows_of(&found["data"]);
    if let Some(first) = rows.first().filter(|first| EXACT.contains(&str_of(&first["match"]))) {
        return Err(MarketError::Redirect(format!("/s/{}", encode(str_of(&first["symbol"])))));
    }
    let fair = fair_matches(rows);
    let body = html! {
        h1 { "Search" }
        @if q.is_empty() { p.lead { "Enter a symbol, a former symbol, an ISIN or a part of a name in the field above." } }
        @else if fair.is_empty() { p.lead { "Nothing is found for “" (q) "”." } }
        @else { (Block { id: "found", title: &format!("Securities for “{q}”"), call: &call, csv: "", body: render_results(&fair) }.render()) }
    };
    Ok(PageContent {
        title: "Search".to_owned(),
        description: "Dividends of stocks and funds by symbol or name.".to_owned(),
        canonical: if q.is_empty() { "/search".to_owned() } else { String::new() },
        section: Section::Search,
        body,
    })
}

/// Minimum score of a similar name that is a fair match.
const FAIR_SCORE: Decimal = Decimal::from_parts(4, 0, 0, false, 1);

/// Results that a reader expects: names that are only similar to the search text count if nothing contains the text, and
/// if they are similar enough.
fn fair_matches(rows: &[Value]) -> Vec<&Value> {
    let is_similar = |row: &&Value| str_of(&row["match"]) == "name_fuzzy";
    let is_fair =
        |row: &&Value| str_of(&row["score"]).parse::<Decimal>().is_ok_and(|score| score >= FAIR_SCORE);
    let exact: Vec<&Value> = rows.iter().filter(|row| !is_similar(row)).collect();
    if exact.is_empty() { rows.iter().filter(is_fair).collect() } else { exact }
}

/// Maximum number of URLs in the file, a limit of the protocol (sitemaps.org).
const MOST: usize = 50_000;
/// Paths of the public pages that do not belong to one security.
const PAGES: [&str; 10] = [
    "/",
    "/plans",
    "/docs",
    "/methods",
    "/versions",
    "/screener",
    "/sectors",
    "/calendar",
    "/income",
    "/quality",
];

pub(crate) async fn show_sitemap(reader: MarketReader) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"))];
    reader.respond_with(write_sitemap(&reader).await.map(|xml| (kind, xml)))
}

async fn write_sitemap(reader: &MarketReader) -> MarketResult<String> {
    let generation = reader.app.projection.pin()?;
    let table = reader.app.memory_tables.stocks(&generation).await?;
    let origin = &reader.origin;
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for page in PAGES {
        let _ = writeln!(xml, "<url><loc>{origin}{page}</loc></url>");
    }
    let restricted = reader.app.memory_tables.restricted(&generation).await?;
    let active = table.rows.iter().map(|security| &security.stock).filter(|stock| stock.is_active);
    for stock in active.filter(|stock| !restricted.contains(&stock.symbol)).take(MOST - PAGES.len()) {
        let (symbol, day) = (encode(&stock.symbol), stock.updated_at.date_naive());
        let _ = writeln!(xml, "<url><loc>{origin}/s/{symbol}</loc><lastmod>{day}</lastmod></url>");
    }
    xml.push_str("</urlset>\n");
    Ok(xml)
}
