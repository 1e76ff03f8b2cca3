//! Writer of a streamed response body.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::read::DataVersion;
use crate::render::body_channel::{BodySender, Disconnected, MAX_UNCOMPRESSED};

/// Writer of a response that has not started. Writing starts when the data version is known.
#[derive(Debug)]
pub(crate) struct ResponseWriter {
    sender: BodySender,
    /// Channel to the task that sends the response. When the body exceeds [`MAX_UNCOMPRESSED`] bytes, the task receives
    /// the data version and starts streaming. `None` if the response must not be streamed.
    long_signal: Option<oneshot::Sender<DataVersion>>,
}

/// Writer of a response that has started.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    sender: BodySender,
    version: DataVersion,
    long_signal: Option<oneshot::Sender<DataVersion>>,
    /// Number of bytes written so far.
    length: usize,
}

/// Completely written response.
#[derive(Debug)]
pub(crate) struct FinishedBody {
    pub(super) version: DataVersion,
    pub(super) next_cursor: Option<String>,
}

impl ResponseWriter {
    /// Creates a writer to a body channel. Without `long_signal`, the response is sent only after it is finished.
    pub(super) fn new(sender: BodySender, long_signal: Option<oneshot::Sender<DataVersion>>) -> Self {
        Self { sender, long_signal }
    }

    /// Starts a response that is rendered from this data version.
    pub(crate) fn begin(self, version: DataVersion) -> BodyWriter {
        BodyWriter { sender: self.sender, version, long_signal: self.long_signal, length: 0 }
    }
}

impl BodyWriter {
    pub(crate) fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), Disconnected> {
        let bytes = bytes.into();
        self.length += bytes.len();
        // The task that responds is notified before the write, so that the client reads while the body is written.
        if self.length > MAX_UNCOMPRESSED
            && let Some(long_signal) = self.long_signal.take()
        {
            long_signal.send(self.version).map_err(|_| Disconnected)?;
        }
        self.sender.write(bytes)
    }

    /// Finishes the response. `next_cursor` is `None` on the last page.
    pub(crate) fn finish(self, next_cursor: Option<String>) -> Result<FinishedBody, Disconnected> {
        self.sender.finish()?;
        Ok(FinishedBody { version: self.version, next_cursor })
    }
}
