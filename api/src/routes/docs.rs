//! `/openapi.json`, `/docs` and `/plans`: the contract, for programs and for people. No key, works offline.
//!
//! The reference is Swagger UI from the program itself; nothing is loaded from elsewhere.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::sync::LazyLock;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

use crate::app::App;
use crate::error::ApiError;

/// No script, no frame, nothing from elsewhere, no style but the page's own.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = HEAD.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
    let digest = STANDARD.encode(Sha256::digest(style.map_or("", |(style, _)| style)));
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});
/// The reference runs its own scripts and calls this service, and nobody else.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const REFERENCE: &str = include_str!("../../templates/docs.html");
const START: &str = include_str!("../../templates/docs.js");
const HEAD: &str = include_str!("../../templates/head.html");
/// The files of Swagger UI that the page needs, and what each is.
const ASSETS: [(&str, &str); 3] = [
    ("favicon-32x32.png", "image/png"),
    ("swagger-ui-bundle.js", "text/javascript"),
    ("swagger-ui.css", "text/css"),
];
/// Unpacked when the first reader comes.
static UNPACKED: LazyLock<HashMap<String, Bytes>> = LazyLock::new(unpack);
/// What does not change while the service runs.
const SHORTLY: (HeaderName, &str) = (header::CACHE_CONTROL, "public, max-age=300");

/// The routes around the document.
pub(crate) fn routes(document: &Value) -> Router<App> {
    let body = Bytes::from(document.to_string());
    let json = [(header::CONTENT_TYPE, "application/json"), SHORTLY];
    Router::new()
        .route("/openapi.json", get(async move || (json, body).into_response()))
        .route("/docs", get(reference))
        .route("/docs/{file}", get(asset))
        .route("/plans", get(plans))
}

/// The reference as a page.
async fn reference() -> Response {
    html(Bytes::from_static(REFERENCE.as_bytes()), REFERENCE_POLICY)
}

/// A file of the reference.
async fn asset(Path(file): Path<String>) -> Response {
    if file == "start.js" {
        return ([(header::CONTENT_TYPE, "text/javascript"), SHORTLY], START).into_response();
    }
    let kind = ASSETS.iter().find(|(name, _)| *name == file).map(|(_, kind)| *kind);
    match kind.zip(UNPACKED.get(&file)) {
        Some((kind, bytes)) => ([(header::CONTENT_TYPE, kind), SHORTLY], bytes.clone()).into_response(),
        None => {
            ApiError::NotFound(format!("Nothing is at /docs/{}", crate::access::scrub(&file))).into_response()
        }
    }
}

/// The assets out of the archive that Swagger UI comes in.
fn unpack() -> HashMap<String, Bytes> {
    let Ok(mut archive) = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED)) else { return HashMap::new() };
    let paths: Vec<String> = archive.file_names().flatten().map(Cow::into_owned).collect();
    let mut unpacked = HashMap::new();
    for (name, _) in ASSETS {
        let path = paths
            .iter()
            .find(|path| path.strip_suffix(name).is_some_and(|folder| folder.ends_with("/dist/")));
        let mut bytes = Vec::new();
        if let Some(Ok(mut file)) = path.map(|path| archive.by_name(path))
            && file.read_to_end(&mut bytes).is_ok()
        {
            unpacked.insert(name.to_owned(), Bytes::from(bytes));
        }
    }
    unpacked
}

/// The tiers as a page: where a refused client learns what it could have.
async fn plans(State(app): State<App>) -> Response {
    let rows: String = app
        .projection
        .tiers()
        .0
        .iter()
        .map(|plan| {
            format!(
                "<tr><td>{}</td><td>{} a minute</td><td>{}</td><td>{}</td><td>{} year{}</td></tr>",
                plan.tier,
                plan.rate_per_minute,
                plan.burst,
                grouped(plan.monthly_quota),
                plan.depth_years,
                if plan.depth_years == 1 { "" } else { "s" }
            )
        })
        .collect();
    let table = "<tr><th>Plan</th><th>Rate</th><th>Burst</th><th>Calls a month</th><th>History</th></tr>";
    let how = "<h2>Upgrade</h2><p>Fundamentals and dividend history need Starter or higher, bulk endpoints Professional. \
               To upgrade, ask the operator of this service; the change holds from the next request on, and what is used \
               of the minute and the month stays used. After a cancellation the paid plan holds until the end of its \
               period.</p>";
    html(Bytes::from(format!("{HEAD}<h1>Plans</h1><table>{table}{rows}</table>{how}</body></html>")), &POLICY)
}

fn html(body: Bytes, policy: &'static str) -> Response {
    let headers = [(header::CONTENT_SECURITY_POLICY, policy), (header::CACHE_CONTROL, "no-cache")];
    (headers, Html(body)).into_response()
}

/// A whole number with its thousands apart.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
