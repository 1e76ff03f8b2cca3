//! Stream wrapper that records reads and writes, for the connection timeouts. It also replaces hyper's replies to
//! protocol errors by the service's own replies.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ClientConnection;
use super::protocol_error::{ErrorReply, ProtocolErrorHandler, hyper_reply_status};

/// Stream whose reads and writes are recorded.
pub(crate) struct MonitoredStream<S> {
    stream: S,
    connection: Arc<ClientConnection>,
    on_protocol_error: ProtocolErrorHandler,
    /// Reply to a protocol error, set after the first error.
    reply: Option<ErrorReply>,
}

impl<S> MonitoredStream<S> {
    pub(crate) fn new(
        stream: S,
        connection: Arc<ClientConnection>,
        on_protocol_error: ProtocolErrorHandler,
    ) -> Self {
        Self { stream, connection, on_protocol_error, reply: None }
    }

    /// Checks if the bytes are hyper's reply to a protocol error. If so, sets the reply of the service, which is
    /// written instead.
    fn recognize_protocol_error(&mut self, bytes: &[u8]) {
        if self.reply.is_none() {
            let status = hyper_reply_status(bytes);
            self.reply = status.map(|status| ErrorReply::new((self.on_protocol_error)(status)));
        }
    }

    fn record_write_result(&self, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => self.connection.record_accepted(*count),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.connection.record_blocked(),
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let count = buffer.filled().len() - before;
        if count > 0 && !self.connection.record_received(count) {
            return Poll::Ready(Err(Error::new(
                ErrorKind::InvalidData,
                "too many large request heads at once",
            )));
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        this.recognize_protocol_error(bytes);
        let written = match &mut this.reply {
            Some(reply) => reply.poll_write(&mut this.stream, cx).map_ok(|()| bytes.len()),
            None => Pin::new(&mut this.stream).poll_write(cx, bytes),
        };
        this.record_write_result(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if let [only] = slices {
            return self.poll_write(cx, only);
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.record_write_result(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        // hyper flushes only when it has written all bytes, so no write is blocked any more.
        self.connection.record_drained();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Self { stream, reply, .. } = self.get_mut();
        ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        match reply {
            Some(reply) => reply.poll_linger(stream, cx),
            None => Poll::Ready(Ok(())),
        }
    }
}
