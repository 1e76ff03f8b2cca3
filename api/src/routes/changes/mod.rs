//! Changes of served rows: the feed by pages, and the stream with its endpoint.

pub(super) mod change_feed;
mod change_stream;
pub(crate) mod endpoint;
mod journal_start;
mod stream_filter;
