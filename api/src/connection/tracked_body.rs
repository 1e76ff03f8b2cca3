//! Response body that keeps the client connection in the phase `working` until the body is dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};

use super::client_connection::RequestGuard;

/// Response body with the guard of its request. The request ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct TrackedBody<B> {
    body: B,
    _working: RequestGuard,
}

impl<B> TrackedBody<B> {
    pub(crate) fn new(body: B, working: RequestGuard) -> Self {
        Self { body, _working: working }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
