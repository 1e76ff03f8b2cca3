//! Writer of a streamed response body.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::read::projection::Version;
use crate::render::body_channel::{Gone, PLAIN, Writer};

/// An answer that is not begun: nothing is written before its version is known.
#[derive(Debug)]
pub(crate) struct Outlet {
    writer: Writer,
    /// Told the version when the answer turns out to be long.
    is_long: Option<oneshot::Sender<Version>>,
}

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct Body {
    writer: Writer,
    version: Version,
    is_long: Option<oneshot::Sender<Version>>,
    /// Bytes written so far.
    length: usize,
}

/// An answer that was written to its end.
#[derive(Debug)]
pub(crate) struct Written {
    pub(super) version: Version,
    pub(super) next_cursor: Option<String>,
}

impl Outlet {
    /// An outlet into a pipe. Without `is_long` nobody is told before the answer is finished.
    pub(super) fn new(writer: Writer, is_long: Option<oneshot::Sender<Version>>) -> Self {
        Self { writer, is_long }
    }

    /// Begins the answer, which is made from this version.
    pub(crate) fn begin(self, version: Version) -> Body {
        Body { writer: self.writer, version, is_long: self.is_long, length: 0 }
    }
}

impl Body {
    /// Writes the next bytes.
    pub(crate) fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        let bytes = bytes.into();
        self.length += bytes.len();
        // Before the bytes, so that the client takes them while they are written.
        if self.length > PLAIN
            && let Some(is_long) = self.is_long.take()
        {
            is_long.send(self.version).map_err(|_| Gone)?;
        }
        self.writer.write(bytes)
    }

    /// Ends the answer, behind which another page may follow.
    pub(crate) fn finish(self, next_cursor: Option<String>) -> Result<Written, Gone> {
        self.writer.finish()?;
        Ok(Written { version: self.version, next_cursor })
    }
}
