//! Why the projector stops or tries again: every error of this crate, so that no module needs another for its error.

use event_log::frame::FrameError;
use event_log::sequence::SequenceError;
use event_log::stream::StreamError;
use market::bars::BarsError;
use market::measure::rules::RuleError;
use market::records::PackedRecordsError;
use market::symbol::Symbol;
use store::copy::EncodeError;
use store::db::{DbError, error_chain};
use store::facts::FactsError;
use tokio::task::JoinError;
use tokio_postgres::error::SqlState;

/// Why the projector ended.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Needs a person; starting again would fail the same way.
    #[error("halted: {0}")]
    Halt(String),
    #[error(transparent)]
    Lost(#[from] LeaseLost),
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error("the position of the facts is damaged: {0}")]
    Sequence(#[from] SequenceError),
    #[error("the figures cannot be kept: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// The epoch was raised by another instance.
#[derive(Debug, thiserror::Error)]
#[error("another projector took over fact set {fact_set}; this one no longer writes")]
pub struct LeaseLost {
    /// The facts that the other one writes now.
    pub fact_set: String,
}

/// Why the log cannot be read on.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    #[error("the log cannot be read: {0}")]
    Consumer(#[source] async_nats::Error),
    #[error(
        "the log jumps from sequence {after} to {found}: messages are missing; nothing was skipped. Restore the stream (ingest verify says what is missing), then start again"
    )]
    Gap { after: u64, found: u64 },
    #[error(
        "message {0} of the log cannot be read: the server has lost it, or its file is damaged; nothing was skipped. Stop the server and bring the log back from its second copy (ingest import)"
    )]
    Unreadable(u64),
    #[error(
        "cannot read message {next} of the log: the server has it and did not deliver it for {seconds} s; a new consumer is created"
    )]
    Stalled { next: u64, seconds: u64 },
    #[error("the log's delivery ended")]
    Ended,
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}

/// Why a batch could not be applied.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("message {sequence}: {source}. The projector stops here rather than skip it")]
    NewerVersion { sequence: u64, source: FrameError },
    #[error("a row of {symbol} cannot be stored: {reason}")]
    Unstorable { symbol: String, code: &'static str, reason: &'static str },
    #[error("a record cannot be written as JSON: {0}")]
    Record(FrameError),
    #[error("records of {symbol} cannot be packed: {source}")]
    Packed { symbol: String, source: PackedRecordsError },
    #[error("prices of {symbol}: {source}")]
    Bars { symbol: String, source: BarsError },
    #[error("merging ended unexpectedly: {0}")]
    Ended(#[source] JoinError),
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error(transparent)]
    Db(#[from] DbError),
}

/// Why read tables could not be derived.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error("deriving {symbol} failed: {message}")]
    Measure { symbol: Symbol, message: String },
    #[error("the prices of {symbol} in {year} changed while it was derived")]
    Moved { symbol: Symbol, year: i32 },
    #[error("deriving ended unexpectedly: {0}")]
    Ended(#[source] JoinError),
    #[error("the benchmark {0:?} is not a ticker symbol")]
    Benchmark(String),
    #[error("the generation's rules are not this program's: {0}")]
    Rules(#[from] RuleError),
    #[error("the read tables have rows of {0:?}, which is not a ticker symbol")]
    Symbol(String),
    #[error("a derived value cannot be packed: {0}")]
    Bars(#[from] BarsError),
    #[error("a derived value cannot be written: {0}")]
    Encode(#[from] EncodeError),
    #[error("a derived value cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

macro_rules! from_statement {
    ($($error:ident),*) => {
        $(impl From<tokio_postgres::Error> for $error {
            fn from(error: tokio_postgres::Error) -> Self {
                Self::Db(error.into())
            }
        })*
    };
}
from_statement!(RunError, ApplyError, DeriveError);

impl RunError {
    /// The reason, when no retry can help.
    pub fn halt_reason(&self) -> Option<String> {
        let permanent = matches!(
            self,
            Self::Halt(_)
                | Self::Sequence(_)
                | Self::Db(DbError::Newer { .. })
                | Self::Consume(
                    ConsumeError::Gap { .. } | ConsumeError::Unreadable(_) | ConsumeError::Sequence(_)
                )
                | Self::Apply(ApplyError::NewerVersion { .. })
                | Self::Derive(
                    DeriveError::Measure { .. }
                        | DeriveError::Benchmark(_)
                        | DeriveError::Rules(_)
                        | DeriveError::Bars(_)
                        | DeriveError::Encode(_)
                        | DeriveError::Json(_)
                )
                | Self::Stream(
                    StreamError::TooOld { .. } | StreamError::NotOurs { .. } | StreamError::Absent { .. }
                )
        );
        permanent.then(|| error_chain(self))
    }
}

impl ApplyError {
    /// The stable code of a refusal that will be the same next time; anything else is worth a retry.
    pub fn dead_letter_code(&self) -> Option<String> {
        let code = match self {
            Self::Db(DbError::Statement(error)) => return data_error_code(error),
            Self::Db(DbError::Encode(_)) | Self::Record(_) | Self::Packed { .. } => "not_storable",
            Self::Bars { .. } => "bad_columns",
            Self::Unstorable { code, .. } => code,
            Self::NewerVersion { .. } | Self::Ended(_) | Self::Facts(_) | Self::Db(_) => return None,
        };
        Some(code.to_owned())
    }
}

/// The code when Postgres refused what a statement said, in contrast to being unable to answer.
fn data_error_code(error: &tokio_postgres::Error) -> Option<String> {
    // Errors without a server's answer come from encoding a parameter, or from a broken connection.
    let Some(code) = error.code() else {
        return (!error.is_closed()).then(|| "not_storable".to_owned());
    };
    let class = &code.code()[..2];
    let data = matches!(class, "21" | "22" | "23" | "54") || *code == SqlState::UNTRANSLATABLE_CHARACTER;
    data.then(|| format!("sql_{}", code.code().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_cannot_be_stored_is_set_aside_and_damaged_facts_are_not_its_fault() {
        let unstorable =
            ApplyError::Unstorable { symbol: "AAA".to_owned(), code: "nul_character", reason: "because" };
        assert_eq!(unstorable.dead_letter_code().as_deref(), Some("nul_character"));
        let source = PackedRecordsError::UnknownVersion(9);
        let damaged = FactsError::Packed { symbol: "AAA".to_owned(), source };
        assert_eq!(ApplyError::Facts(damaged).dead_letter_code(), None);
    }

    #[test]
    fn a_gap_in_the_log_halts_and_a_lost_connection_does_not() {
        assert!(RunError::Consume(ConsumeError::Gap { after: 1, found: 3 }).halt_reason().is_some());
        assert!(RunError::Consume(ConsumeError::Ended).halt_reason().is_none());
        assert!(RunError::Consume(ConsumeError::Stalled { next: 3, seconds: 15 }).halt_reason().is_none());
    }
}
