//! The answer to what is no HTTP request: hyper refuses such itself, without a body, so ours is written in its place.

use std::io::{ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::StatusCode;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a refusal is answered with, as it goes over the connection.
pub(crate) type Refusals = Box<dyn Fn(StatusCode) -> Bytes + Send + Sync>;

/// Bytes that are taken from a refused client at most, so that it gets to read its answer.
const LINGER: usize = 1024 * 1024;

/// The status of the library's own refusal. Every answer of the service has an id, and the library's has none.
pub(super) fn status(bytes: &[u8]) -> Option<StatusCode> {
    let rest = bytes.strip_prefix(b"HTTP/1.1 ").filter(|rest| rest.starts_with(b"4"))?;
    let has_id = bytes.windows(12).any(|name| name == b"x-request-id");
    (!has_id).then(|| StatusCode::from_bytes(rest.get(..3)?).ok())?
}

/// A refusal on its way.
#[derive(Debug)]
pub(super) struct Refusal {
    answer: Bytes,
    lingered: usize,
}

impl Refusal {
    pub(super) fn new(answer: Bytes) -> Self {
        Self { answer, lingered: 0 }
    }

    /// Writes all of the answer.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        while self.answer.has_remaining() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, &self.answer))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                count => self.answer.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes what the client still sends: closed before that, the connection would be reset and the answer lost.
    pub(super) fn poll_linger<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let mut space = [0; 4096];
        while self.lingered < LINGER {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_without_an_id_are_the_librarys() {
        let own = b"HTTP/1.1 400 Bad Request\r\nx-request-id: 1\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(status(own), None);
        assert_eq!(status(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(status(b"the rest of a body"), None);
        let librarys = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(status(librarys), Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
}
