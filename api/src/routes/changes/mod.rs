//! Changes of served rows: the paged feed, and the change stream with its endpoint.

pub(super) mod change_feed;
mod change_stream;
pub(crate) mod endpoint;
mod journal_start;
mod stream_filter;
