//! Replies to protocol errors: malformed HTTP/1.1 requests, and request heads that are too large. hyper sends its own
//! reply. The stream below hyper replaces it with a reply of this service.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Buf, Bytes};
use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::request_id::REQUEST_ID_HEADER;

/// Renders the service's reply to a protocol error. The argument is the status of hyper's reply.
pub(crate) type ProtocolErrorHandler = Box<dyn Fn(StatusCode) -> Response + Send + Sync>;

/// Maximum number of bytes read from the client after the reply. If the connection were closed while the client is
/// still sending, the client could lose the reply.
const MAX_LINGER_BYTES: usize = 1024 * 1024;

/// Returns the status of the reply if the bytes are an error reply that hyper wrote; otherwise `None`.
pub(super) fn hyper_reply_status(bytes: &[u8]) -> Option<StatusCode> {
    let rest = bytes.strip_prefix(b"HTTP/1.1 ").filter(|rest| rest.starts_with(b"4"))?;
    // Every response of this service has a request id, so a reply without an id comes from hyper.
    let name = REQUEST_ID_HEADER;
    let name = name.as_str().as_bytes();
    let has_id = bytes.windows(name.len()).any(|window| window == name);
    if has_id { None } else { StatusCode::from_bytes(rest.get(..3)?).ok() }
}

/// Reply that is written in place of hyper's reply.
#[derive(Debug)]
pub(super) struct ErrorReply {
    bytes: Bytes,
    lingered: usize,
}

impl ErrorReply {
    pub(super) fn new(response: Response) -> Self {
        Self { bytes: encode(response), lingered: 0 }
    }

    /// Writes the whole reply.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.bytes.has_remaining() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, &self.bytes))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                count => self.bytes.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Discards the bytes that the client still sends. An earlier close could reset the connection and lose the reply.
    pub(super) fn poll_linger<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut space = [0; 4096];
        while self.lingered < MAX_LINGER_BYTES {
            let mut buffer = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))?;
            match buffer.filled().len() {
                0 => break,
                count => self.lingered += count,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Encodes a response as HTTP/1.1 bytes, with the header `connection: close`.
fn encode(mut response: Response) -> Bytes {
    let body = std::mem::take(response.body_mut());
    let body = axum::body::to_bytes(body, usize::MAX).now_or_never().and_then(Result::ok);
    debug_assert!(body.is_some(), "the body of an error is in memory");
    let body = body.unwrap_or_default();
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
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_replies_without_an_id_are_hypers() {
        let own = b"HTTP/1.1 400 Bad Request\r\nx-request-id: 1\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(hyper_reply_status(own), None);
        assert_eq!(hyper_reply_status(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(hyper_reply_status(b"the rest of a body"), None);
        let hypers = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(hyper_reply_status(hypers), Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }

    #[test]
    fn a_reply_is_a_whole_response() {
        let mut response = Response::new(Body::from("{\"error\":1}"));
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let bytes = encode(response);
        let text = std::str::from_utf8(&bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
        assert!(head.contains("connection: close") && head.contains("content-length: 11"), "{head}");
        assert_eq!(body, "{\"error\":1}");
    }
}
