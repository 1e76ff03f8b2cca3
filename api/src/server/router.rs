//! Router of all endpoints. The middleware around the router is in [`crate::middleware`].
//!
//! Invariant: `routes!` registers a route and its documentation in one step, so they cannot differ.

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admission::RequestContext;
use crate::answer::{Access, Free};
use crate::app::App;
use crate::error::ApiError;
use crate::parameters::{MIN_VERSION_HEADER, UnroutedParameters};
use crate::routes::{
    bulk, changes, compare, conversion, dividend_calendar, dividend_history, etfs, openapi, portfolio,
    prices, provenance, screeners, search, sectors, service, stocks,
};
use crate::{dashboard, mcp};

/// Response headers that scripts from allowed origins may read.
const EXPOSED: [&str; 13] = [
    "deprecation",
    "sunset",
    "etag",
    "link",
    "retry-after",
    "x-request-id",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-quota-limit",
    "x-quota-remaining",
    "x-quota-reset",
    "ratelimit",
];

fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::document::OpenApiFrame::openapi())
        .merge(
            OpenApiRouter::new()
                .routes(routes!(service::health))
                .routes(routes!(service::status))
                .route_layer(map_request(record_route)),
        )
        .routes(routes!(stocks::list::list))
        .routes(routes!(stocks::snapshot::snapshot))
        .routes(routes!(stocks::snapshot::quote))
        .routes(routes!(stocks::snapshot::fundamentals))
        .routes(routes!(stocks::metrics::metrics))
        .routes(routes!(stocks::metrics::metrics_history))
        .routes(routes!(stocks::records::dividends))
        .routes(routes!(stocks::records::splits))
        .routes(routes!(stocks::events::events))
        .routes(routes!(etfs::holdings::etf_holders))
        .routes(routes!(stocks::revisions::revisions))
        .routes(routes!(dividend_calendar::calendar))
        .routes(routes!(dividend_history::history))
        .routes(routes!(dividend_calendar::ex_dates))
        .routes(routes!(dividend_calendar::payment_dates))
        .routes(routes!(dividend_calendar::split_calendar))
        .routes(routes!(screeners::screener))
        .routes(routes!(screeners::high_yield))
        .routes(routes!(screeners::dividend_growth))
        .routes(routes!(screeners::dividend_aristocrats))
        .routes(routes!(screeners::dividend_kings))
        .routes(routes!(etfs::list))
        .routes(routes!(etfs::detail))
        .routes(routes!(etfs::holdings::holdings))
        .routes(routes!(prices::history::history))
        .routes(routes!(prices::latest))
        .routes(routes!(conversion::rates))
        .routes(routes!(prices::growth::growth))
        .routes(routes!(search::search))
        .routes(routes!(compare::compare))
        .routes(routes!(sectors::list))
        .routes(routes!(sectors::detail))
        .routes(routes!(provenance::sources))
        .routes(routes!(provenance::quality))
        .routes(routes!(portfolio::income))
        .routes(routes!(portfolio::received::dividends))
        .routes(routes!(changes::changes))
        .routes(routes!(bulk::quotes))
        .routes(routes!(bulk::metrics))
        .routes(routes!(bulk::dividends))
        .routes(routes!(prices::market::market))
        .routes(routes!(provenance::files))
}

/// Complete router: documented endpoints, MCP, pages, fallbacks and CORS.
pub(crate) fn build_router(app: App) -> Result<Router, serde_json::Error> {
    let (routes, document) = documented().split_for_parts();
    let data = routes.clone().with_state(app.clone());
    let document = openapi::document::complete_document(&document)?;
    let others = mcp::routes(&app, data.clone())
        .merge(dashboard::dashboard_routes(&app, data, &document))
        .merge(openapi::routes(&document))
        .merge(service::routes())
        .route_layer(map_request(record_route));
    let routes = routes.merge(others).fallback(unrouted).method_not_allowed_fallback(method_not_allowed);
    let routes = match cors(&app.settings.cors_allowed_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    Ok(routes.with_state(app))
}

/// Middleware that records the matched route of a request. Only endpoints without an [`Access`] parameter use it. For
/// all other endpoints, [`Access`] records the route.
async fn record_route(endpoint: MatchedPath, request: Request) -> Request {
    if let Some(caller) = RequestContext::from_extensions(request.extensions()) {
        caller.set_route(&endpoint);
    }
    request
}

/// CORS layer; `None` if no origin is allowed. A preflight request needs no key.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.trim().parse().ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers([
            HeaderName::from_static("last-event-id"),
            header::AUTHORIZATION,
            header::ACCEPT,
            header::CONTENT_TYPE,
            header::IF_NONE_MATCH,
            MIN_VERSION_HEADER,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("x-api-key"),
        ])
        .expose_headers(EXPOSED.map(HeaderName::from_static))
        .max_age(std::time::Duration::from_secs(600));
    Some(layer)
}

/// True if the path is under `/v1` in any spelling or encoding.
fn needs_key(path: &str) -> bool {
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().to_ascii_lowercase();
    let twice = percent_encoding::percent_decode_str(&decoded).decode_utf8_lossy().to_ascii_lowercase();
    twice.split(['/', '\\']).any(|segment| segment == "v1")
}

async fn unrouted(State(app): State<App>, uri: Uri, request: Request) -> Response {
    if !needs_key(uri.path()) && is_browser(&request) {
        return dashboard::not_found_page(&app, &request, &displayed_path(uri.path()));
    }
    let refused = check_access(&app, uri.path(), request).await.err();
    refused.unwrap_or_else(|| ApiError::NotFound(not_found_message(uri.path()))).into_response()
}

async fn method_not_allowed(State(app): State<App>, uri: Uri, request: Request) -> ApiError {
    let refused = check_access(&app, uri.path(), request).await.err();
    let is_post = [mcp::PATH, portfolio::received::PATH].contains(&uri.path());
    let allow = if is_post { "POST" } else { "GET, HEAD" };
    refused.unwrap_or(ApiError::MethodNotAllowed { allow })
}

/// True if the request accepts HTML, as browsers do and API clients do not.
fn is_browser(request: &Request) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/html"))
}

/// Checks the access of a request with an unknown route or method. Under `/v1`, such a request needs a key, like a
/// request to a known route.
async fn check_access(app: &App, path: &str, request: Request) -> Result<(), ApiError> {
    use axum::extract::FromRequestParts;
    if needs_key(path) {
        let (mut parts, _) = request.into_parts();
        Access::<Free, UnroutedParameters>::from_request_parts(&mut parts, app).await?;
    }
    Ok(())
}

/// Message of a 404. If the `/v1` prefix is doubled, the message contains the correct path.
fn not_found_message(path: &str) -> String {
    let (mut right, mut is_doubled) = (path, false);
    while let Some(rest) = right.strip_prefix("/v1").filter(|rest| rest.starts_with("/v1/")) {
        (right, is_doubled) = (rest, true);
    }
    match is_doubled {
        true => format!(
            "Nothing is at {}; the correct address is {}",
            displayed_path(path),
            displayed_path(right)
        ),
        false => format!("Nothing is at {}", displayed_path(path)),
    }
}

/// Path for a message: secrets are masked, and the length is limited.
fn displayed_path(path: &str) -> String {
    crate::auth::redact_secrets(path).chars().take(128).collect()
}

#[cfg(test)]
mod tests {
    use super::{needs_key, not_found_message};

    #[test]
    fn a_doubled_version_is_told_the_right_address() {
        let expected = "Nothing is at /v1/v1/stocks/KO; the correct address is /v1/stocks/KO";
        assert_eq!(not_found_message("/v1/v1/stocks/KO"), expected);
        assert!(not_found_message("/v1/v1/v1/stocks").ends_with("the correct address is /v1/stocks"));
        for path in ["/v1/v1", "/v1/v10/stocks", "/v1/nothing"] {
            assert_eq!(not_found_message(path), format!("Nothing is at {path}"));
        }
    }

    #[test]
    fn no_spelling_of_v1_skips_the_key() {
        for path in [
            "/v1",
            "/v1/",
            "/v1//stocks",
            "//v1/stocks",
            "/V1/stocks",
            "/%76%31/stocks",
            "/%2576%31/x",
            "/x/%2e%2e/v1/stocks",
            "/v1\\stocks",
            "/x%2fv1%2fstocks",
        ] {
            assert!(needs_key(path), "{path}");
        }
        for path in ["/", "/docs", "/openapi.json", "/v10", "/favicon.ico"] {
            assert!(!needs_key(path), "{path}");
        }
    }
}
