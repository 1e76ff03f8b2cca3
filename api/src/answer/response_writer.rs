//! Writer of a streamed response body.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::read::projection::Version;
use crate::render::body_channel::{Gone, PLAIN, Writer};

/// Unstarted response. Writing starts once the data version is known.
#[derive(Debug)]
pub(crate) struct Outlet {
    writer: Writer,
    /// Receives the version when the response becomes long.
    is_long: Option<oneshot::Sender<Version>>,
}

/// Response in progress.
#[derive(Debug)]
pub(crate) struct Body {
    writer: Writer,
    version: Version,
    is_long: Option<oneshot::Sender<Version>>,
    /// Bytes written so far.
    length: usize,
}

/// Completely written response.
#[derive(Debug)]
pub(crate) struct Written {
    pub(super) version: Version,
    pub(super) next_cursor: Option<String>,
}

impl Outlet {
    /// Creates an outlet into a pipe. Without `is_long`, the response is not streamed before it is finished.
    pub(super) fn new(writer: Writer, is_long: Option<oneshot::Sender<Version>>) -> Self {
        Self { writer, is_long }
    }

    /// Starts the response, rendered from this version.
    pub(crate) fn begin(self, version: Version) -> Body {
        Body { writer: self.writer, version, is_long: self.is_long, length: 0 }
    }
}

impl Body {
    pub(crate) fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        let bytes = bytes.into();
        self.length += bytes.len();
        // Signal before the write, so that the client reads while the body is written.
        if self.length > PLAIN
            && let Some(is_long) = self.is_long.take()
        {
            is_long.send(self.version).map_err(|_| Gone)?;
        }
        self.writer.write(bytes)
    }

    /// Finishes the response. A cursor announces the next page.
    pub(crate) fn finish(self, next_cursor: Option<String>) -> Result<Written, Gone> {
        self.writer.finish()?;
        Ok(Written { version: self.version, next_cursor })
    }
}
