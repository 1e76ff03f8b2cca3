//! Changes of served rows, read from the journal, for `updated_since` and for change streams.
//!
//! Invariants: one task per instance reads the journal. Streams do not wait for each other. The memory of a stream is
//! bounded.

mod change;
mod change_page;
mod change_ring;
mod journal_reader;
mod notice;

pub(crate) use change::{Change, ChangedRow, StreamData, TrackedRow};
pub(crate) use change_page::{ChangePage, ChangeSelection, ListedSecurities};
pub(crate) use change_ring::Lagged;
pub(crate) use journal_reader::{JournalReader, RingSubscription};
pub(crate) use notice::{NoticeSelection, read_notice};
