//! Change stream: the endpoint, and the stream of events behind it.

mod change_stream;
pub(crate) mod endpoint;
mod stream_filter;
