//! A stream that tells its connection what goes over it.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Connection;
use super::refusal::{self, Refusal, Refusals};

/// A stream whose progress is noted.
pub(crate) struct Guarded<S> {
    stream: S,
    connection: Arc<Connection>,
    refusals: Refusals,
    /// The answer to what was no request, once there was such.
    refusal: Option<Refusal>,
}

impl<S> Guarded<S> {
    /// Notes the stream's progress in this connection.
    pub(crate) fn new(stream: S, connection: Arc<Connection>, refusals: Refusals) -> Self {
        Self { stream, connection, refusals, refusal: None }
    }

    /// Whether these bytes are the library's own refusal, which ours takes the place of.
    fn refuses(&mut self, bytes: &[u8]) -> bool {
        if self.refusal.is_none() {
            self.refusal = refusal::status(bytes).map(|status| Refusal::new((self.refusals)(status)));
        }
        self.refusal.is_some()
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

impl<S: AsyncWrite + Unpin> Guarded<S> {
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.refusal {
            Some(refusal) => refusal.poll_write(&mut self.stream, cx),
            None => Poll::Ready(Ok(())),
        }
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = match self.refuses(bytes) {
            true => self.poll_refuse(cx).map_ok(|()| bytes.len()),
            false => Pin::new(&mut self.stream).poll_write(cx, bytes),
        };
        self.noted(written)
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

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Self { stream, refusal, .. } = self.get_mut();
        ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        match refusal {
            Some(refusal) => refusal.poll_linger(stream, cx),
            None => Poll::Ready(Ok(())),
        }
    }
}
