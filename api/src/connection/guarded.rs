//! A stream that tells its connection what goes over it.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Connection;

/// A stream whose progress is noted.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    stream: S,
    connection: Arc<Connection>,
}

impl<S> Guarded<S> {
    /// Notes the stream's progress in this connection.
    pub(crate) fn new(stream: S, connection: Arc<Connection>) -> Self {
        Self { stream, connection }
    }

    fn noted(&self, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => self.connection.took(*count),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.connection.blocked(),
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let count = buffer.filled().len() - before;
        if count > 0 && !self.connection.received(count) {
            return Poll::Ready(Err(Error::new(ErrorKind::InvalidData, "no room for another large head")));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        // Whoever flushes has nothing more to write at the moment.
        self.connection.drained();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
