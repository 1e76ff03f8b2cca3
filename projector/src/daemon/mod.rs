//! Daemon of the projector. It runs in sessions. A session is one database connection under one writer lease. After a
//! transient error, the daemon starts a new session.
//!
//! Before a session begins, the daemon checks that the facts come from this stream, and that the stream has all later
//! messages.

pub(crate) mod batch_writer;
pub mod lease;
pub mod run;

use std::sync::atomic::Ordering;

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::Stream;
use event_log::message::LogMessage;
use event_log::sequence::Sequence;
use event_log::stream;

use crate::daemon::lease::Lease;
use crate::error::{ConsumeError, RunError};
use crate::settings::ProjectorSettings;

/// Checks that the facts were built from this log, and that the log has all messages after the checkpoint. Returns the
/// identity of the stream.
pub(super) fn check_log(stream: &Stream, lease: &Lease) -> Result<String, RunError> {
    let state = &stream.cached_info().state;
    let genesis = stream::stream_identity(stream)?;
    let halt = |what: String| {
        Err(RunError::Halt(format!(
            "cannot continue: {what}; restore the log (ingest import), or start with an empty database"
        )))
    };
    if lease.genesis_id.as_ref().is_some_and(|known| *known != genesis) {
        return halt(
            "the stream was deleted and created again: its genesis_id is not the one of the facts".to_owned(),
        );
    }
    let (applied, first, last) = (lease.checkpoint.to_u64(), state.first_sequence, state.last_sequence);
    if last < applied {
        return halt(format!("the log ends at {last}, but message {applied} was already applied"));
    }
    let next = applied + 1;
    if state.messages > 0 && first > next {
        return halt(format!("the log begins at {first}, but message {next} is next"));
    }
    Ok(genesis)
}

/// Number of times that the client has connected to the NATS server. It rises with each reconnect.
pub(super) fn connect_count(context: &Context) -> u64 {
    context.client().statistics().connects.load(Ordering::Relaxed)
}

/// Fails if the message at the checkpoint `sequence` has another id than `message`. The server has then lost the end of
/// the log and reused the lost sequences.
pub(super) async fn check_position(
    context: &Context,
    settings: &ProjectorSettings,
    sequence: Sequence,
    message: Option<&str>,
) -> Result<(), RunError> {
    let Some(applied) = message else { return Ok(()) };
    let found = LogMessage::fetch(context, &settings.applying.stream.nats_stream, sequence.to_u64()).await;
    match found.map_err(ConsumeError::of_server)? {
        Some(found) if found.id() != applied => Err(RunError::Halt(format!(
            "cannot continue: message {sequence} of the log is not the one that was applied; the log lost its end and reused \
             its sequences; restore the log from its second copy (ingest import), or start with an empty database"
        ))),
        Some(_) | None => Ok(()),
    }
}
