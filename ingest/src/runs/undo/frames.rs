//! The frames of an undo: rows cut by number, so that the same undo gives the same frames.

use event_log::frame::{Body, FrameError};

use crate::batch::accumulator::Piece;
use crate::batch::encode::{Encoded, Encoder};

/// Rows of a frame: few enough that any row fits beside the others.
pub(super) const ROWS: usize = 500;

/// Encoded frames in order.
#[derive(Debug, Default)]
pub(super) struct Frames {
    encoder: Encoder,
    pub encoded: Vec<Encoded>,
    pub rows: u64,
}

impl Frames {
    /// Adds a frame.
    pub(super) fn push(&mut self, body: Body) -> Result<(), FrameError> {
        let line = self.rows + 1;
        self.rows += body.rows() as u64;
        self.encoder.encode(Piece::Rows(body, line), &mut |frame| self.encoded.push(frame))?;
        Ok(())
    }
}
