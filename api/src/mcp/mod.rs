//! `/mcp`: the API as tools for language models, over the Model Context Protocol's streamable HTTP.
//!
//! Invariants: a tool's call is one call of the API through its own router, with the caller's key, so access, depth and
//! limits are the API's own; any other message costs one of the minute's calls, and what is no message one of its
//! address's; nothing is remembered between two requests.

mod answer;
mod call;
mod passage;
mod server;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::StreamExt;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::admission::Caller;
use crate::answer::{Access, Free};
use crate::app::state::App;
use crate::connection::request_id::request_id;
use crate::error::ApiError;
use crate::parameters::Unrouted;
use passage::Passage;
use server::Server;

/// Where the tools are.
pub(crate) const PATH: &str = "/mcp";
/// The largest message, bytes.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Of a larger one so many bytes are passed over, not kept: a client that still sends does not read its refusal.
const PASSED_OVER_BYTES: usize = 1024 * 1024;

type Service = StreamableHttpService<Server, NeverSessionManager>;

/// The route of the tools, which call `data`.
pub(crate) fn routes(app: &App, data: Router) -> Router<App> {
    let server = Server::new(app.clone(), data);
    // Names of hosts need no check: no browser adds a key by itself to what a page sends.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(Vec::<String>::new())
        .with_max_request_body_bytes(MESSAGE_BYTES);
    let service: Service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let handler = async move |State(app): State<App>, request: Request| {
        converse(app, service, request).await.unwrap_or_else(IntoResponse::into_response)
    };
    Router::new().route(PATH, post(handler))
}

/// Answers one message. The answer is handed out once somebody was charged for it.
async fn converse(app: App, service: Service, request: Request) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    check_origin(&app, &parts.headers)?;
    let body = message(&app, body).await?;
    let passage = Passage::new(request_id());
    parts.extensions.insert(passage.clone());
    let asked = Request::from_parts(parts.clone(), Body::from(body));
    let answer = service.handle(asked).await;
    if passage.has_refused_key() {
        return Err(ApiError::InvalidKey);
    }
    let was_charged = Caller::of(&parts.extensions).is_some_and(|caller| caller.entry().is_some());
    if !was_charged {
        admit(&mut parts, &app).await?;
    }
    in_json(answer.map(Body::new)).await
}

/// Charges what no endpoint answers.
async fn admit(parts: &mut Parts, app: &App) -> Result<(), ApiError> {
    Access::<Free, Unrouted>::from_request_parts(parts, app).await.map(|_| ())
}

/// Refuses pages of other origins than the configured ones, as the protocol demands.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let is_known =
        |known: &String| origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(known.trim()));
    if app.settings.cors_allowed_origins.iter().any(is_known) {
        return Ok(());
    }
    Err(refused(StatusCode::FORBIDDEN, "Pages of this origin may not call the service"))
}

/// The body, when it is one message of the protocol. Batches are none.
async fn message(app: &App, body: Body) -> Result<Vec<u8>, ApiError> {
    let body = match tokio::time::timeout(app.settings.client_patience().head, read(body)).await {
        Ok(read) => read?,
        Err(_) => return Err(refused(StatusCode::REQUEST_TIMEOUT, "The body took too long")),
    };
    match serde_json::from_slice::<ClientJsonRpcMessage>(&body) {
        Ok(_) => Ok(body),
        Err(_) => {
            Err(refused(StatusCode::BAD_REQUEST, "The body is not one JSON-RPC message of the protocol"))
        }
    }
}

/// The bytes of a body that is no larger than a message may be.
async fn read(body: Body) -> Result<Vec<u8>, ApiError> {
    let (mut pieces, mut bytes, mut length) = (body.into_data_stream(), Vec::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| refused(StatusCode::BAD_REQUEST, "The body broke off"))?;
        length += piece.len();
        if length > PASSED_OVER_BYTES {
            break;
        }
        if length <= MESSAGE_BYTES {
            bytes.extend_from_slice(&piece);
        }
    }
    if length > MESSAGE_BYTES {
        let message = format!("The body is larger than {MESSAGE_BYTES} bytes");
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &message));
    }
    Ok(bytes)
}

fn refused(status: StatusCode, message: &str) -> ApiError {
    ApiError::Refused { status, message: message.to_owned() }
}

/// The protocol's refusals in the service's form.
async fn in_json(answer: Response) -> Result<Response, ApiError> {
    let status = answer.status();
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return Ok(answer);
    }
    let text = axum::body::to_bytes(answer.into_body(), MESSAGE_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match status.is_server_error() {
        true => Err(ApiError::Internal(anyhow::anyhow!("the tools' protocol failed: {text}"))),
        false => Err(refused(status, &text)),
    }
}
