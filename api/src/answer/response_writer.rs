//! Writer of the response to an expensive request.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::read::DataVersion;
use crate::render::body_channel::{BodyReceiver, BodySender, Disconnected, SEGMENT, body_channel};

/// Maximum size of a short body, in bytes. The rest of a longer body goes through a channel.
const MAX_SHORT: usize = 1024 * 1024;

/// Writer of a response that has not started. Writing starts when the data version is known.
#[derive(Debug)]
pub(crate) struct ResponseWriter {
    long: oneshot::Sender<LongBody>,
}

/// Body that exceeds [`MAX_SHORT`] bytes.
#[derive(Debug)]
pub(super) struct LongBody {
    pub(super) version: DataVersion,
    pub(super) receiver: BodyReceiver,
}

/// Writer of a response that has started.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    version: DataVersion,
    /// Channel to the task that responds; `None` after it got a long body.
    long: Option<oneshot::Sender<LongBody>>,
    sender: Option<BodySender>,
    /// Bytes that are not in the channel yet.
    buffer: Vec<u8>,
    /// Number of bytes written so far.
    length: usize,
}

/// Completely written response.
#[derive(Debug)]
pub(crate) struct FinishedBody {
    pub(super) version: DataVersion,
    pub(super) next_cursor: Option<String>,
    /// Body of a short response; empty if the body is long.
    pub(super) short: Bytes,
    pub(super) length: usize,
}

impl ResponseWriter {
    /// Creates a writer. As soon as the body is long, `long` gets it.
    pub(super) fn new(long: oneshot::Sender<LongBody>) -> Self {
        Self { long }
    }

    /// Starts a response that is rendered from this data version.
    pub(crate) fn begin(self, version: DataVersion) -> BodyWriter {
        BodyWriter { version, long: Some(self.long), sender: None, buffer: Vec::new(), length: 0 }
    }
}

impl BodyWriter {
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Disconnected> {
        let bytes = bytes.as_ref();
        self.length += bytes.len();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > MAX_SHORT
            && let Some(long) = self.long.take()
        {
            let (sender, receiver) = body_channel();
            self.sender = Some(sender);
            long.send(LongBody { version: self.version, receiver }).map_err(|_| Disconnected)?;
        }
        if let Some(sender) = &self.sender {
            let complete = self.buffer.len() - self.buffer.len() % SEGMENT;
            for segment in self.buffer.drain(..complete).as_slice().chunks(SEGMENT) {
                sender.send(segment)?;
            }
        }
        Ok(())
    }

    /// Finishes the response. `next_cursor` is `None` on the last page.
    pub(crate) fn finish(self, next_cursor: Option<String>) -> Result<FinishedBody, Disconnected> {
        let short = match self.sender {
            // A boxed slice is used, because it has no spare capacity.
            None => self.buffer.into_boxed_slice().into(),
            Some(sender) => {
                sender.send(&self.buffer)?;
                sender.finish()?;
                Bytes::new()
            }
        };
        Ok(FinishedBody { version: self.version, next_cursor, short, length: self.length })
    }
}
