//! Stream wrapper with a write timeout: a client must accept the next 64 KiB, or all remaining bytes, in time.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Number of bytes that a client must accept within the timeout, unless fewer bytes remain.
const MIN_ACCEPTED_BYTES: usize = 64 * 1024;

/// Stream with a write timeout.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// Set when a write blocks. Cleared when the client has accepted [`MIN_ACCEPTED_BYTES`] or all bytes.
    blocked: Option<BlockedWrite>,
}

struct BlockedWrite {
    deadline: Pin<Box<Sleep>>,
    accepted: usize,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, blocked: None }
    }

    /// Records the result of a write. Replaces it by an error after the deadline.
    fn check(&mut self, cx: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match (&written, &mut self.blocked) {
            (Poll::Ready(Ok(count)), Some(blocked)) => {
                blocked.accepted += count;
                if blocked.accepted >= MIN_ACCEPTED_BYTES {
                    self.blocked = None;
                }
            }
            (Poll::Ready(_), _) => {}
            (Poll::Pending, blocked) => {
                let new = || BlockedWrite { deadline: Box::pin(sleep(self.timeout)), accepted: 0 };
                if blocked.get_or_insert_with(new).deadline.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client reads too slowly")));
                }
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        // hyper flushes only when it has written all bytes, so no write is blocked any more.
        self.blocked = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Writes 1 MiB to a client that reads `part` bytes each second. Returns the result and the duration.
    async fn write_to(part: usize) -> (Result<()>, Duration) {
        let (stream, mut client) = duplex(1024);
        let read = async |client: &mut DuplexStream| {
            let mut bytes = vec![0; part];
            while client.read_exact(&mut bytes).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let started = Instant::now();
        let mut stream = WriteTimeout::new(stream, TIMEOUT);
        let text = vec![b'a'; 1024 * 1024];
        let written = tokio::select! {
            written = stream.write_all(&text) => written,
            () = read(&mut client) => Ok(()),
        };
        (written, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_has_time_and_a_trickling_one_has_not() {
        let (written, took) = write_to(4 * 1024).await;
        assert!(written.is_ok() && took > 2 * TIMEOUT, "{written:?} {took:?}");
        let (written, took) = write_to(1).await;
        assert_eq!(written.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        assert!(took >= TIMEOUT && took < TIMEOUT + Duration::from_secs(2), "{took:?}");
    }
}
