//! `/mcp`: the API as tools for language models, over the Model Context Protocol.
//!
//! Invariants: a tool call is a call of the API's router with the caller's key. Requests share no state.

mod tool_result;
mod tools;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientJsonRpcMessage, ContentBlock,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool as ToolDescription,
};
use rmcp::service::RequestContext as ToolRequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tower::ServiceExt;

use crate::admission::RequestContext;
use crate::answer::{Access, Free, read_body};
use crate::app::App;
use crate::connection::{RequestId, current_request_id, with_request_id};
use crate::error::ApiError;
use crate::parameters::UnroutedParameters;
use tool_result::ToolResult;
use tools::ToolCall;

/// Path of the MCP endpoint.
pub(crate) const PATH: &str = "/mcp";
/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

type Service = StreamableHttpService<McpServer, NeverSessionManager>;

/// Router of the MCP endpoint. `data` is the router that the tools call.
pub(crate) fn routes(app: &App, data: Router) -> Router<App> {
    let server = McpServer { app: app.clone(), data };
    // The library's check of the Host header prevents DNS rebinding by web pages. It is not needed here: every request
    // needs a key, and a browser never adds one.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(Vec::<String>::new())
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES);
    let service: Service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let handler = async move |State(app): State<App>, request: Request| {
        handle_message(app, service, request).await.unwrap_or_else(IntoResponse::into_response)
    };
    Router::new().route(PATH, post(handler))
}

/// Handles one message. If the message leads to a call of the API's router, the router charges the call to the account.
/// All other messages are charged here, before the response is sent.
async fn handle_message(app: App, service: Service, request: Request) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    check_origin(&app, &parts.headers)?;
    let body = read_message(&app, body).await?;
    let call_context = CallContext { id: current_request_id(), has_refused_key: Arc::default() };
    parts.extensions.insert(call_context.clone());
    let request = Request::from_parts(parts.clone(), Body::from(body));
    let answer = service.handle(request).await;
    if call_context.has_refused_key.load(Ordering::Acquire) {
        return Err(ApiError::InvalidKey);
    }
    let was_charged =
        RequestContext::from_extensions(&parts.extensions).is_some_and(|caller| caller.limits().is_some());
    // The message did not call the API's router: it is, for example, `tools/list`, or a tool call with an invalid
    // argument.
    if !was_charged {
        Access::<Free, UnroutedParameters>::from_request_parts(&mut parts, &app).await?;
    }
    to_service_error(answer.map(Body::new)).await
}

/// Refuses a request of a web page if the page's origin is not configured. The protocol requires this check.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let is_known =
        |known: &String| origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(known.trim()));
    if app.settings.cors_allowed_origins.iter().any(is_known) {
        return Ok(());
    }
    Err(ApiError::refused(StatusCode::FORBIDDEN, "Web pages of this origin may not call the service"))
}

/// Reads the body as one protocol message. A JSON-RPC batch (an array of messages) is refused.
async fn read_message(app: &App, body: Body) -> Result<Vec<u8>, ApiError> {
    let body = read_body(body, MAX_MESSAGE_BYTES, app.settings.request_timeout).await?;
    serde_json::from_slice::<ClientJsonRpcMessage>(&body).map_err(|_| {
        ApiError::refused(StatusCode::BAD_REQUEST, "The body is not one JSON-RPC message of the protocol")
    })?;
    Ok(body)
}

/// Converts an error response of the MCP library (`rmcp`) to the service's JSON. Returns other responses unchanged.
async fn to_service_error(answer: Response) -> Result<Response, ApiError> {
    let status = answer.status();
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return Ok(answer);
    }
    let text = axum::body::to_bytes(answer.into_body(), MAX_MESSAGE_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match status.is_server_error() {
        true => Err(ApiError::Internal(anyhow::anyhow!("the MCP library failed: {text}"))),
        false => Err(ApiError::refused(status, text)),
    }
}

/// Instructions for the model. The client gets them when it connects, before it lists the tools.
const INSTRUCTIONS: &str = include_str!("instructions.md");
/// Maximum size of an API response, in bytes. It is sufficient for the largest page of the largest rows.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// Context of one HTTP request, shared with the tasks of the MCP library.
#[derive(Debug, Clone)]
pub(super) struct CallContext {
    /// Request id of the HTTP request.
    pub(super) id: RequestId,
    /// True if the API refused the key of a tool call.
    pub(super) has_refused_key: Arc<AtomicBool>,
}

/// MCP server handler, which calls the API's routes.
#[derive(Debug, Clone)]
pub(super) struct McpServer {
    pub(super) app: App,
    /// Router that the tools call.
    pub(super) data: Router,
}

impl McpServer {
    /// Sends the API request of a tool call, and converts the response to a tool result.
    async fn call_api(
        &self,
        call: &ToolCall,
        caller: &Parts,
        call_context: &CallContext,
    ) -> Result<ToolResult, ErrorData> {
        // The request cannot be built if its URI exceeds 64 KiB.
        let Ok(request) = call.request(caller) else { return Ok(ToolResult::too_large()) };
        // A panic is caught. Otherwise it would end the task of the MCP library, and the client would get no response.
        let answering = AssertUnwindSafe(self.data.clone().oneshot(request)).catch_unwind();
        let response = match answering.await {
            Ok(Ok(response)) => response,
            Err(_) => ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response(),
        };
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            call_context.has_refused_key.store(true, Ordering::Release);
        }
        if status.is_server_error() {
            self.refund(caller);
        }
        let body = axum::body::to_bytes(response.into_body(), MAX_RESPONSE_BYTES).await;
        let body = body.map_err(|error| {
            self.refund(caller);
            tracing::error!(error = format!("{error:#}"), "cannot run a tool call");
            ErrorData::internal_error("the call failed; repeat it in a few seconds", None)
        })?;
        Ok(ToolResult::from_response(call, status, &String::from_utf8_lossy(&body)))
    }

    /// Refunds the quota charge of a failed call.
    fn refund(&self, caller: &Parts) {
        if let Some(caller) = RequestContext::from_extensions(&caller.extensions) {
            self.app.admission.refund_failed_request(caller);
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("dividend-data-service", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name.with_title("Dividend data service"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: ToolRequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()?.iter().map(tools::Tool::describe).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<ToolDescription> {
        tools::find(name).ok()?.map(tools::Tool::describe)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: ToolRequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let call_context = parts.and_then(|parts| parts.extensions.get::<CallContext>());
        let Some((caller, call_context)) = parts.zip(call_context) else {
            return Err(ErrorData::internal_error(
                "cannot call a tool: the call did not arrive over HTTP",
                None,
            ));
        };
        let Some(tool) = tools::find(&request.name)? else {
            return Err(ErrorData::invalid_params("unknown tool; tools/list returns all tools", None));
        };
        let answer = match ToolCall::from_arguments(tool, &request.arguments.unwrap_or_default()) {
            Ok(call) => {
                let asking = Box::pin(self.call_api(&call, caller, call_context));
                with_request_id(call_context.id.clone(), asking).await?
            }
            Err(error) => ToolResult::invalid_argument(error),
        };
        let content = vec![ContentBlock::text(answer.text)];
        let result = match answer.is_error {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        Ok(result.into())
    }
}
