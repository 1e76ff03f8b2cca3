//! `/sitemap.xml`: URLs of the public pages, for search engines.

use std::fmt::Write;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::dashboard::market::api_calls::{MarketResult, encode};
use crate::dashboard::market::reader::MarketReader;

/// Maximum number of URLs in the file, a limit of the protocol (sitemaps.org).
const MOST: usize = 50_000;
/// Paths of the public pages that do not belong to one security.
const PAGES: [&str; 8] =
    ["/", "/plans", "/docs", "/screener", "/sectors", "/calendar", "/income", "/quality"];

pub(crate) async fn show_sitemap(reader: MarketReader) -> Response {
    match write_sitemap(&reader).await {
        Ok(xml) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"))], xml).into_response()
        }
        Err(error) => reader.respond_error(error).await,
    }
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
    let active = table.rows.iter().map(|security| &security.stock).filter(|stock| stock.is_active);
    for stock in active.take(MOST - PAGES.len()) {
        let (symbol, day) = (encode(&stock.symbol), stock.updated_at.date_naive());
        let _ = writeln!(xml, "<url><loc>{origin}/s/{symbol}</loc><lastmod>{day}</lastmod></url>");
    }
    xml.push_str("</urlset>\n");
    Ok(xml)
}
