//! `/openapi.json` and `/docs`: the contract, for programs and for people. No key, works offline.
//!
//! The reference is Swagger UI from the program itself; nothing is loaded from elsewhere.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::Value;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

use super::method::Document;
use crate::app::App;
use crate::error::ApiError;

/// The reference runs its own scripts and calls this service, and nobody else.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const REFERENCE: &str = include_str!("../../templates/docs.html");
const START: &str = include_str!("../../templates/docs.js");
const STYLE: &str = include_str!("../../templates/docs.css");
/// The files of Swagger UI that the page needs, and what each is.
const ASSETS: [(&str, &str); 3] = [
    ("favicon-32x32.png", "image/png"),
    ("swagger-ui-bundle.js", "text/javascript"),
    ("swagger-ui.css", "text/css"),
];
/// Unpacked when the first reader comes.
static UNPACKED: LazyLock<HashMap<String, Bytes>> = LazyLock::new(unpack);
/// What changes with a promotion at most.
const SHORTLY: (HeaderName, &str) = (header::CACHE_CONTROL, "public, max-age=300");

/// The routes around the document.
pub(crate) fn routes(document: &Value) -> Router<App> {
    let document = Arc::new(Document::new(document));
    let json = [(header::CONTENT_TYPE, "application/json"), SHORTLY];
    let openapi =
        async move |State(app): State<App>| (json, document.under(&app.projection.method())).into_response();
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/docs", get(reference))
        .route("/docs/{file}", get(asset))
}

/// The reference as a page.
async fn reference() -> Response {
    html(Bytes::from_static(REFERENCE.as_bytes()), REFERENCE_POLICY)
}

/// A file of the reference.
async fn asset(Path(file): Path<String>) -> Response {
    match file.as_str() {
        "start.js" => return ([(header::CONTENT_TYPE, "text/javascript"), SHORTLY], START).into_response(),
        "start.css" => return ([(header::CONTENT_TYPE, "text/css"), SHORTLY], STYLE).into_response(),
        _ => {}
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

fn html(body: Bytes, policy: &'static str) -> Response {
    let headers = [(header::CONTENT_SECURITY_POLICY, policy), (header::CACHE_CONTROL, "no-cache")];
    (headers, Html(body)).into_response()
}
