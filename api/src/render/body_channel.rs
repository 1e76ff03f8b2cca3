//! Body channel of streamed responses. It contains the bytes that are written but not yet sent (the backlog).
//!
//! The writer never waits for the client. The backlog above 1 MiB is compressed.
//!
//! Invariant: a truncated response never looks complete.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Maximum size of the uncompressed backlog, in bytes. Further bytes are compressed.
pub(crate) const MAX_UNCOMPRESSED: usize = 1024 * 1024;
/// Size of a segment, in bytes. Segments are queued and compressed one by one.
const SEGMENT: usize = 128 * 1024;
/// Compression level. The fastest level already compresses repetitive rows to less than a tenth.
const LEVEL: i32 = 1;

/// Error of a writer whose client has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client disconnected")]
pub(crate) struct Disconnected;

/// Error of a reader whose writer has stopped before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response was truncated")]
pub(crate) struct Truncated;

/// Write end of the channel. If it is dropped before `finish`, the response is truncated.
#[derive(Debug)]
pub(crate) struct BodySender {
    backlog: SharedBacklog,
    /// Bytes of the current segment, which is not complete yet.
    segment: Vec<u8>,
    is_finished: bool,
}

/// Read end of the channel. It owns a guard, such as a permit, which is dropped with the read end.
#[derive(Debug)]
pub(crate) struct BodyReceiver<H> {
    backlog: SharedBacklog,
    _guard: H,
}

#[derive(Debug, Clone, Default)]
struct SharedBacklog(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Segment>,
    /// Size of the uncompressed part of the backlog, in bytes.
    plain: usize,
    /// Size of the whole backlog, in bytes before compression.
    left: usize,
    end: Option<Result<(), Truncated>>,
    is_read: bool,
    reader: Option<Waker>,
}

#[derive(Debug)]
enum Segment {
    Plain(Bytes),
    Packed { bytes: Box<[u8]>, unpacked: usize },
}

/// Creates both ends of an empty channel. The read end owns `guard`.
pub(crate) fn body_channel<H>(guard: H) -> (BodySender, BodyReceiver<H>) {
    let backlog = SharedBacklog::default();
    backlog.state().is_read = true;
    let reader = BodyReceiver { backlog: backlog.clone(), _guard: guard };
    (BodySender { backlog, segment: Vec::new(), is_finished: false }, reader)
}

impl SharedBacklog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a segment. If the uncompressed backlog is full, the segment is compressed.
    fn push(&self, bytes: Bytes) -> Result<(), Disconnected> {
        let is_room = {
            let state = self.state();
            if !state.is_read {
                return Err(Disconnected);
            }
            state.plain + bytes.len() <= MAX_UNCOMPRESSED
        };
        let unpacked = bytes.len();
        // A boxed slice is used, because it has no spare capacity.
        let packed =
            if is_room { None } else { zstd::bulk::compress(&bytes, LEVEL).ok().map(Vec::into_boxed_slice) };
        let mut state = self.state();
        state.left += unpacked;
        state.plain += if packed.is_none() { unpacked } else { 0 };
        state.waiting.push_back(match packed {
            Some(bytes) => Segment::Packed { bytes, unpacked },
            None => Segment::Plain(bytes),
        });
        state.wake();
        Ok(())
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn next(&mut self) -> Option<Segment> {
        let segment = self.waiting.pop_front()?;
        match &segment {
            Segment::Plain(bytes) => {
                self.plain -= bytes.len();
                self.left -= bytes.len();
            }
            Segment::Packed { unpacked, .. } => self.left -= unpacked,
        }
        Some(segment)
    }
}

impl Segment {
    fn plain(&self) -> Option<&Bytes> {
        if let Self::Plain(bytes) = self { Some(bytes) } else { None }
    }

    fn unpacked(self) -> Result<Bytes, Truncated> {
        match self {
            Self::Plain(bytes) => Ok(bytes),
            Self::Packed { bytes, unpacked } => {
                zstd::bulk::decompress(&bytes, unpacked).map(Bytes::from).map_err(|_| Truncated)
            }
        }
    }
}

impl BodySender {
    /// Writes bytes. A block of 128 KiB to 1 MiB is queued as one segment without a copy. The bytes of every other
    /// block are copied into segments.
    pub(crate) fn write(&mut self, bytes: Bytes) -> Result<(), Disconnected> {
        if (SEGMENT..=MAX_UNCOMPRESSED).contains(&bytes.len()) {
            self.flush()?;
            return self.backlog.push(bytes);
        }
        for part in bytes.chunks(SEGMENT) {
            self.segment.extend_from_slice(part);
            if self.segment.len() >= SEGMENT {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Disconnected> {
        if self.segment.is_empty() {
            Ok(())
        } else {
            self.backlog.push(std::mem::take(&mut self.segment).into())
        }
    }

    /// Finishes the response.
    pub(crate) fn finish(mut self) -> Result<(), Disconnected> {
        self.flush()?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        let mut state = self.backlog.state();
        state.end = Some(if self.is_finished { Ok(()) } else { Err(Truncated) });
        state.wake();
    }
}

impl<H> BodyReceiver<H> {
    /// Whole body, if the writer has finished and no segment is compressed; otherwise `None`.
    pub(crate) fn complete_body(&self) -> Option<Bytes> {
        let state = self.backlog.state();
        let is_plain = state.end == Some(Ok(())) && state.plain == state.left;
        let parts: Option<Vec<&Bytes>> = state.waiting.iter().map(Segment::plain).collect();
        match parts.filter(|_| is_plain)?.as_slice() {
            [one] => Some((*one).clone()),
            several => {
                let parts: Vec<&[u8]> = several.iter().map(|part| &part[..]).collect();
                Some(parts.concat().into())
            }
        }
    }
}

impl<H: Unpin> Body for BodyReceiver<H> {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let segment = {
            let mut state = self.backlog.state();
            match (state.next(), state.end) {
                (Some(segment), _) => segment,
                (None, Some(end)) => return Poll::Ready(end.err().map(Err)),
                (None, None) => {
                    state.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        Poll::Ready(Some(segment.unpacked().map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        let state = self.backlog.state();
        state.waiting.is_empty() && state.end == Some(Ok(()))
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.backlog.state();
        let left = u64::try_from(state.left);
        match (state.end, left) {
            (Some(Ok(())), Ok(left)) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }
}

impl<H> Drop for BodyReceiver<H> {
    fn drop(&mut self) {
        let mut state = self.backlog.state();
        state.is_read = false;
        state.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    async fn next(reader: &mut BodyReceiver<()>) -> Option<Result<Bytes, Truncated>> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *reader).poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    fn lines(count: usize) -> Bytes {
        (0..count)
            .map(|n| format!("{{\"date\":\"2024-06-{:02}\",\"close\":{n}}},", n % 31))
            .collect::<String>()
            .into()
    }

    #[tokio::test]
    async fn what_is_not_taken_is_packed_and_comes_out_as_it_went_in() {
        let (mut writer, mut reader) = body_channel(());
        let text = lines(250_000);
        for part in text.chunks(1_000) {
            writer.write(Bytes::copy_from_slice(part)).expect("a reader");
        }
        writer.finish().expect("a reader");
        let held: usize = reader
            .backlog
            .state()
            .waiting
            .iter()
            .map(|segment| match segment {
                Segment::Plain(bytes) => bytes.len(),
                Segment::Packed { bytes, .. } => bytes.len(),
            })
            .sum();
        assert!(text.len() > 8 * MAX_UNCOMPRESSED && held < 2 * MAX_UNCOMPRESSED, "{held} of {}", text.len());
        assert_eq!(reader.size_hint().exact(), u64::try_from(text.len()).ok());
        assert!(reader.complete_body().is_none(), "it is long");
        let mut taken = Vec::new();
        while let Some(part) = next(&mut reader).await {
            taken.extend_from_slice(&part.expect("whole"));
        }
        assert!(taken == text && reader.is_end_stream());
    }

    #[tokio::test]
    async fn an_answer_without_its_end_is_broken() {
        let (mut writer, mut reader) = body_channel(());
        writer.write(lines(10_000)).expect("a reader");
        assert!(reader.complete_body().is_none() && reader.size_hint().exact().is_none(), "more may come");
        assert!(matches!(next(&mut reader).await, Some(Ok(_))));
        assert!(next(&mut reader).now_or_never().is_none(), "waits");
        drop(writer);
        assert!(matches!(next(&mut reader).await, Some(Err(Truncated))));
    }

    #[tokio::test]
    async fn a_short_answer_is_whole_and_a_writer_without_a_client_is_told() {
        let (mut writer, reader) = body_channel(());
        let text = lines(20);
        writer.write(text.clone()).expect("a reader");
        writer.finish().expect("a reader");
        assert_eq!(reader.complete_body(), Some(text));
        let (mut writer, reader) = body_channel(());
        drop(reader);
        assert_eq!(writer.write(lines(SEGMENT)), Err(Disconnected));
    }
}
