//! MCP server handler: server info, list of tools, call of a tool.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use futures::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as ToolDescription,
};
use rmcp::service::RequestContext as ToolRequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tower::ServiceExt;

use super::tool_call::ToolCall;
use super::tool_result::ToolResult;
use super::tools;
use crate::admission::RequestContext;
use crate::app::state::App;
use crate::connection::request_id::{self, RequestId};
use crate::error::ApiError;

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
                request_id::with_request_id(call_context.id.clone(), asking).await?
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
