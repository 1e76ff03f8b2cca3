//! Body channel of long responses: a bounded channel of segments that are rendered but not yet sent (the backlog).
//!
//! The writer never waits for the client. Segments behind a backlog of 1 MiB are compressed.
//!
//! Invariant: a truncated response never looks complete.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Size of a segment, in bytes.
pub(crate) const SEGMENT: usize = 128 * 1024;
/// Number of uncompressed segments in the backlog.
const MAX_UNCOMPRESSED: usize = 8;
/// Maximum number of segments in the backlog: 128 MiB before compression.
const CAPACITY: usize = 1_024;
/// Compression level. The fastest level already compresses repetitive rows to less than a tenth.
const LEVEL: i32 = 1;

/// Error of a writer whose client has disconnected, or reads so slowly that the channel is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client disconnected")]
pub(crate) struct Disconnected;

/// Error of a reader whose writer has stopped before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response was truncated")]
struct Truncated;

/// Write end of the channel. If it is dropped before `finish`, the response is truncated.
#[derive(Debug)]
pub(crate) struct BodySender(mpsc::Sender<Segment>);

/// Read end of the channel.
#[derive(Debug)]
pub(crate) struct BodyReceiver(mpsc::Receiver<Segment>);

#[derive(Debug)]
enum Segment {
    Plain(Bytes),
    Packed {
        bytes: Box<[u8]>,
        unpacked: usize,
    },
    /// End of a complete response.
    End,
}

/// Creates both ends of an empty channel.
pub(crate) fn body_channel() -> (BodySender, BodyReceiver) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (BodySender(sender), BodyReceiver(receiver))
}

impl BodySender {
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), Disconnected> {
        let backlog = CAPACITY - self.0.capacity();
        let packed = if backlog < MAX_UNCOMPRESSED { None } else { zstd::bulk::compress(bytes, LEVEL).ok() };
        self.push(match packed {
            // A boxed slice is used, because it has no spare capacity.
            Some(packed) => Segment::Packed { bytes: packed.into_boxed_slice(), unpacked: bytes.len() },
            None => Segment::Plain(Bytes::copy_from_slice(bytes)),
        })
    }

    /// Finishes the response.
    pub(crate) fn finish(self) -> Result<(), Disconnected> {
        self.push(Segment::End)
    }

    fn push(&self, segment: Segment) -> Result<(), Disconnected> {
        self.0.try_send(segment).map_err(|error| {
            if let TrySendError::Full(_) = error {
                tracing::error!(
                    "a response exceeds the backlog of {} MiB",
                    CAPACITY * SEGMENT / (1024 * 1024)
                );
            }
            Disconnected
        })
    }
}

impl BodyReceiver {
    pub(crate) fn into_body(self) -> Body {
        let parts = stream::unfold(self.0, async |mut segments| {
            let bytes = match segments.recv().await {
                Some(Segment::End) => return None,
                Some(Segment::Plain(bytes)) => Ok(bytes),
                Some(Segment::Packed { bytes, unpacked }) => {
                    zstd::bulk::decompress(&bytes, unpacked).map(Bytes::from).map_err(|_| Truncated)
                }
                None => Err(Truncated),
            };
            Some((bytes, segments))
        });
        // The compression layer polls a body again after its end.
        Body::from_stream(parts.fuse())
    }
}

/// Response body with a guard, such as a permit, that is dropped with the body.
pub(crate) fn guard_body<B: HttpBody, G>(
    body: B,
    guard: G,
) -> impl HttpBody<Data = B::Data, Error = B::Error> {
    body.map_err(move |error| {
        let _owned_by_the_body = &guard;
        error
    })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    fn lines(count: usize) -> Bytes {
        (0..count)
            .map(|n| format!("{{\"date\":\"2024-06-{:02}\",\"close\":{n}}},", n % 31))
            .collect::<String>()
            .into()
    }

    #[tokio::test]
    async fn a_backlog_is_packed_and_comes_out_as_it_went_in() {
        let (writer, mut reader) = body_channel();
        let text = lines(250_000);
        for part in text.chunks(SEGMENT) {
            writer.send(part).expect("a reader");
        }
        writer.finish().expect("a reader");
        let (mut held, mut segments) = (0, Vec::new());
        while let Some(segment) = reader.0.recv().await {
            held += match &segment {
                Segment::Plain(bytes) => bytes.len(),
                Segment::Packed { bytes, .. } => bytes.len(),
                Segment::End => 0,
            };
            segments.push(segment);
        }
        let most = 2 * MAX_UNCOMPRESSED * SEGMENT;
        assert!(text.len() > 4 * most && held < most, "{held} of {}", text.len());
        let (writer, reader) = body_channel();
        segments.into_iter().for_each(|segment| writer.push(segment).expect("a reader"));
        assert_eq!(to_bytes(reader.into_body(), usize::MAX).await.expect("whole"), text);
    }

    #[tokio::test]
    async fn a_response_without_its_end_is_truncated() {
        let (writer, reader) = body_channel();
        writer.send(&lines(10)).expect("a reader");
        drop(writer);
        let error = to_bytes(reader.into_body(), usize::MAX).await.expect_err("truncated");
        assert!(error.to_string().contains("truncated"), "{error}");
    }

    #[tokio::test]
    async fn a_writer_without_a_client_is_told() {
        let (writer, reader) = body_channel();
        drop(reader);
        assert_eq!(writer.send(&lines(1)), Err(Disconnected));
        let (writer, _reader) = body_channel();
        let sent = (0..=CAPACITY).take_while(|_| writer.send(&lines(1)).is_ok()).count();
        assert_eq!(sent, CAPACITY, "the backlog is bounded");
    }
}
