//! Body channel of streamed responses: bounded backlog between writer and client, compressed when it grows.
//!
//! The writer never waits for the client, so a slow client holds neither a connection to Postgres nor a place among those
//! that render. What it has not taken yet is packed beyond a bound.
//!
//! Invariants: the reader sees an end only when the writer has finished, so an answer that breaks off is never taken for a
//! whole one; a writer whose client has gone is told so.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Bytes that wait for the client as they are; what is beyond is packed.
pub(crate) const PLAIN: usize = 1024 * 1024;
/// Bytes that are handed over at once.
const SEGMENT: usize = 128 * 1024;
/// The fastest level: rows repeat themselves, and shrink to less than a tenth by it.
const LEVEL: i32 = 1;

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has gone")]
pub(crate) struct Gone;

/// The answer ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub(crate) struct BrokenOff;

/// The end that is written to; dropped before it is finished, it breaks the answer off.
#[derive(Debug)]
pub(crate) struct Writer {
    pipe: Pipe,
    /// What is not handed over yet.
    segment: Vec<u8>,
    is_finished: bool,
}

/// The end that is read from, and what is held as long as somebody reads.
#[derive(Debug)]
pub(crate) struct Reader<H> {
    pipe: Pipe,
    _held: H,
}

#[derive(Debug, Clone, Default)]
struct Pipe(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Segment>,
    /// Bytes that wait as they are.
    plain: usize,
    /// Bytes that wait, unpacked.
    left: usize,
    end: Option<Result<(), BrokenOff>>,
    is_read: bool,
    reader: Option<Waker>,
}

#[derive(Debug)]
enum Segment {
    Plain(Bytes),
    Packed { bytes: Box<[u8]>, unpacked: usize },
}

/// Both ends of an empty pipe.
pub(crate) fn pipe<H>(held: H) -> (Writer, Reader<H>) {
    let pipe = Pipe::default();
    pipe.state().is_read = true;
    let reader = Reader { pipe: pipe.clone(), _held: held };
    (Writer { pipe, segment: Vec::new(), is_finished: false }, reader)
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a segment over, packed when many wait.
    fn push(&self, bytes: Bytes) -> Result<(), Gone> {
        let is_room = {
            let state = self.state();
            if !state.is_read {
                return Err(Gone);
            }
            state.plain + bytes.len() <= PLAIN
        };
        let unpacked = bytes.len();
        // Without the room that the packer reserved for bytes that do not shrink.
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
    fn unpacked(self) -> Result<Bytes, BrokenOff> {
        match self {
            Self::Plain(bytes) => Ok(bytes),
            Self::Packed { bytes, unpacked } => {
                zstd::bulk::decompress(&bytes, unpacked).map(Bytes::from).map_err(|_| BrokenOff)
            }
        }
    }
}

impl Writer {
    /// Writes bytes; many that need not be packed are handed over without a copy.
    pub(crate) fn write(&mut self, bytes: Bytes) -> Result<(), Gone> {
        if (SEGMENT..=PLAIN).contains(&bytes.len()) {
            self.flush()?;
            return self.pipe.push(bytes);
        }
        for part in bytes.chunks(SEGMENT) {
            self.segment.extend_from_slice(part);
            if self.segment.len() >= SEGMENT {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Gone> {
        if self.segment.is_empty() {
            Ok(())
        } else {
            self.pipe.push(std::mem::take(&mut self.segment).into())
        }
    }

    /// Ends the answer.
    pub(crate) fn finish(mut self) -> Result<(), Gone> {
        self.flush()?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.pipe.state();
        state.end = Some(if self.is_finished { Ok(()) } else { Err(BrokenOff) });
        state.wake();
    }
}

impl<H> Reader<H> {
    /// The whole answer where it is finished, waits as it is, and is not long.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        let state = self.pipe.state();
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

impl Segment {
    fn plain(&self) -> Option<&Bytes> {
        match self {
            Self::Plain(bytes) => Some(bytes),
            Self::Packed { .. } => None,
        }
    }
}

impl<H: Unpin> Body for Reader<H> {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let segment = {
            let mut state = self.pipe.state();
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
        let state = self.pipe.state();
        state.waiting.is_empty() && state.end == Some(Ok(()))
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.pipe.state();
        let left = u64::try_from(state.left);
        match (state.end, left) {
            (Some(Ok(())), Ok(left)) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }
}

impl<H> Drop for Reader<H> {
    fn drop(&mut self) {
        let mut state = self.pipe.state();
        state.is_read = false;
        state.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    async fn next(reader: &mut Reader<()>) -> Option<Result<Bytes, BrokenOff>> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *reader).poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// Lines that are alike, as rows are.
    fn lines(count: usize) -> Bytes {
        (0..count)
            .map(|n| format!("{{\"date\":\"2024-06-{:02}\",\"close\":{n}}},", n % 31))
            .collect::<String>()
            .into()
    }

    #[tokio::test]
    async fn what_is_not_taken_is_packed_and_comes_out_as_it_went_in() {
        let (mut writer, mut reader) = pipe(());
        let text = lines(250_000);
        for part in text.chunks(1_000) {
            writer.write(Bytes::copy_from_slice(part)).expect("a reader");
        }
        writer.finish().expect("a reader");
        let held: usize = reader
            .pipe
            .state()
            .waiting
            .iter()
            .map(|segment| match segment {
                Segment::Plain(bytes) => bytes.len(),
                Segment::Packed { bytes, .. } => bytes.len(),
            })
            .sum();
        assert!(text.len() > 8 * PLAIN && held < 2 * PLAIN, "{held} of {}", text.len());
        assert_eq!(reader.size_hint().exact(), u64::try_from(text.len()).ok());
        assert!(reader.whole().is_none(), "it is long");
        let mut taken = Vec::new();
        while let Some(part) = next(&mut reader).await {
            taken.extend_from_slice(&part.expect("whole"));
        }
        assert!(taken == text && reader.is_end_stream());
    }

    #[tokio::test]
    async fn an_answer_without_its_end_is_broken() {
        let (mut writer, mut reader) = pipe(());
        writer.write(lines(10_000)).expect("a reader");
        assert!(reader.whole().is_none() && reader.size_hint().exact().is_none(), "more may come");
        assert!(matches!(next(&mut reader).await, Some(Ok(_))));
        assert!(next(&mut reader).now_or_never().is_none(), "waits");
        drop(writer);
        assert!(matches!(next(&mut reader).await, Some(Err(BrokenOff))));
    }

    #[tokio::test]
    async fn a_short_answer_is_whole_and_a_writer_without_a_client_is_told() {
        let (mut writer, reader) = pipe(());
        let text = lines(20);
        writer.write(text.clone()).expect("a reader");
        writer.finish().expect("a reader");
        assert_eq!(reader.whole(), Some(text));
        let (mut writer, reader) = pipe(());
        drop(reader);
        assert_eq!(writer.write(lines(SEGMENT)), Err(Gone));
    }
}
