//! `/feed/{key}/…`: answers of the API for programs that cannot send a header, such as spreadsheets and calendars.
//!
//! Invariants: the key in the address is an ordinary key. So its account is charged, its limits apply, and its deletion
//! ends the address. Logs mask it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use tower::ServiceExt;

use crate::admission::RequestContext;
use crate::app::site_address::SiteAddress;
use crate::app::state::App;
use crate::dashboard::market::api_calls::with_parameter;
use crate::dashboard::market::calendar::icalendar::{MEDIA_TYPE, call, write_calendar};
use crate::dashboard::market::calendar::subscription::host_of;
use crate::dashboard::session::form::Form;
use crate::error::ApiError;

/// Maximum bytes of the answer behind a calendar.
const BYTES: usize = 4 * 1024 * 1024;

/// Router of the addresses with a key; `data` answers them.
pub(crate) fn feed_routes(data: &Router) -> Router<App> {
    let (of_calendar, of_rows) = (data.clone(), data.clone());
    let calendar = async move |State(app): State<App>, Path(key): Path<String>, caller: Parts| {
        show_calendar(&app, of_calendar, &key, &caller).await.unwrap_or_else(IntoResponse::into_response)
    };
    let rows = async move |Path((key, _)): Path<(String, String)>, caller: Parts| {
        // The path as sent, because a symbol may contain an encoded slash.
        let target = caller.uri.path_and_query().and_then(|target| target.as_str().split_once("/v1/"));
        let target = target.map_or(String::new(), |(_, target)| format!("/v1/{target}"));
        let target = if target.contains("format=") { target } else { with_parameter(&target, "format=csv") };
        ask(of_rows, &key, &target, &caller).await.unwrap_or_else(IntoResponse::into_response)
    };
    Router::new().route("/feed/{key}/calendar.ics", get(calendar)).route("/feed/{key}/v1/{*path}", get(rows))
}

/// Response of the API to a call with the key.
async fn ask(data: Router, key: &str, target: &str, caller: &Parts) -> Result<Response, ApiError> {
    let unreadable = |_| ApiError::NotFound("Nothing is at this address".to_owned());
    let mut request = Request::get(target).body(Body::empty()).map_err(unreadable)?;
    let bearer = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| ApiError::InvalidKey)?;
    request.headers_mut().insert(header::AUTHORIZATION, bearer);
    if let Some(context) = RequestContext::from_extensions(&caller.extensions) {
        request.extensions_mut().insert(Arc::clone(context));
    }
    let Ok(response) = data.oneshot(request).await;
    Ok(response)
}

async fn show_calendar(app: &App, data: Router, key: &str, caller: &Parts) -> Result<Response, ApiError> {
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let call = with_parameter(&call(form.text("symbols"), app.today()), "decimals=string");
    let response = ask(data, key, &call, caller).await?;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    let body = to_bytes(response.into_body(), BYTES).await;
    let body = body.map_err(|error| ApiError::Unavailable(error.to_string()))?;
    let answer: Value = serde_json::from_slice(&body).map_err(|error| ApiError::Internal(error.into()))?;
    let rows = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calendar = write_calendar(rows, host_of(&origin_of(app, caller)));
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], calendar).into_response())
}

fn origin_of(app: &App, caller: &Parts) -> String {
    let context = RequestContext::from_extensions(&caller.extensions);
    let unknown = (std::net::Ipv4Addr::UNSPECIFIED.into(), false);
    let (client, is_proxied) = context.map_or(unknown, |context| (context.client, context.is_proxied));
    let public = app.settings.dashboard.public_url.as_ref();
    SiteAddress::from_request(&caller.headers, client, is_proxied, public).origin
}
