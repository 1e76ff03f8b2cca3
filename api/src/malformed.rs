//! What a client is told that sent no HTTP request, or one with too large a head: an error like any other, with the
//! limits' headers.

use std::fmt::Write;
use std::net::IpAddr;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::FutureExt;

use crate::app::App;
use crate::connection::Refusals;
use crate::error::ApiError;
use crate::layers;
use crate::settings::HEAD_BYTES;

/// Answers for one connection.
pub(crate) fn answers(app: App, client: IpAddr) -> Refusals {
    Box::new(move |status| written(layers::refuse(&app, client, error(status))))
}

fn error(status: StatusCode) -> ApiError {
    match status {
        // An address of more than 64 KiB is a head that is too large.
        StatusCode::URI_TOO_LONG | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => ApiError::Refused {
            status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            message: format!(
                "The request's head may have {} KiB, its address 64; give fewer symbols a call",
                HEAD_BYTES / 1024
            ),
        },
        _ => ApiError::Refused {
            status: StatusCode::BAD_REQUEST,
            message: "This is not an HTTP/1.1 request".to_owned(),
        },
    }
}

/// A response as bytes, after which the connection ends.
fn written(mut response: Response) -> Bytes {
    // An error's body is in memory, so there is nothing to wait for.
    let body = std::mem::take(response.body_mut());
    let body = axum::body::to_bytes(body, usize::MAX).now_or_never().and_then(Result::ok).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut head = format!("HTTP/1.1 {}\r\n", response.status());
    for (name, value) in response.headers() {
        // Writing to a string cannot fail.
        let _ = write!(head, "{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    head.push_str("\r\n");
    [head.as_bytes(), &body].concat().into()
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn a_refusal_is_a_whole_response() {
        let bytes = written(error(StatusCode::URI_TOO_LONG).into_response());
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
        assert!(
            head.contains("connection: close") && head.contains(&format!("content-length: {}", body.len()))
        );
        assert!(body.contains("\"code\":\"HEAD_TOO_LARGE\""));
    }
}
