//! Errors of the projector. They are in one file, so that modules do not depend on each other for their errors.

use codec::bars::PackedBarsError;
use codec::records::PackedRecordsError;
use event_log::record_batch::{BatchError, RecordError};
use event_log::sequence::{Sequence, SequenceError};
use event_log::stream::StreamError;
use market::metrics::rules::RuleError;
use market::symbol::Symbol;
use store::copy::EncodeError;
use store::db::{DbError, error_chain};
use store::facts::FactsError;
use tokio::task::JoinError;
use tokio_postgres::error::SqlState;

/// Error that ends a session of the daemon (one database connection under one lease). A permanent error also stops the
/// daemon.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Permanent error: an operator must act before the next start.
    #[error("halted: {0}")]
    Halt(String),
    /// Another projector has acquired the lease on the fact set.
    #[error("lease on fact set {fact_set} lost: another projector acquired it")]
    Lost { fact_set: String },
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("cannot complete the facts of an older program: {0}")]
    Facts(#[from] FactsError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error("cannot read the checkpoint of the facts: {0}")]
    Sequence(#[from] SequenceError),
    #[error("cannot register the metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// Reason for a failure to read the log.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    #[error("cannot read the log: {0}")]
    Consumer(#[source] async_nats::Error),
    #[error(
        "cannot continue: the log has no messages between {after} and {found}; restore them (ingest verify lists what is missing), then start again"
    )]
    Gap { after: u64, found: u64 },
    #[error(
        "cannot read message {0} of the log: the server lost it, or its file is damaged; stop the server and restore the log from its second copy (ingest import)"
    )]
    Unreadable(u64),
    #[error("cannot read message {sequence} of the log: {source}")]
    Message { sequence: u64, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot read the log: the delivery ended")]
    Ended,
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}

/// Reason for a failure to apply a batch.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("cannot apply message {sequence}: {source}; upgrade this program")]
    NewerVersion { sequence: Sequence, source: BatchError },
    #[error("cannot store a row of {symbol}: {reason}")]
    Unstorable { symbol: String, code: &'static str, reason: &'static str },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot pack the records of {symbol}: {source}")]
    Packed { symbol: String, source: PackedRecordsError },
    #[error("cannot merge the prices of {symbol}: {source}")]
    Bars { symbol: String, source: PackedBarsError },
    #[error("cannot merge prices: {0}")]
    Ended(#[source] JoinError),
    #[error(transparent)]
    Log(#[from] ConsumeError),
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error(transparent)]
    Db(#[from] DbError),
}

/// Reason for a failure to derive read tables.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error("cannot derive {symbol}: {message}")]
    Measure { symbol: Symbol, message: String },
    #[error("cannot write {symbol}: its prices of {year} changed during the derivation")]
    ConcurrentChange { symbol: Symbol, year: i32 },
    #[error("cannot derive: {0}")]
    Ended(#[source] JoinError),
    #[error("cannot use the benchmark {0:?}: it is not a ticker symbol")]
    Benchmark(String),
    #[error("cannot use the generation's rules: {0}")]
    Rules(#[from] RuleError),
    #[error("cannot pack a derived value: {0}")]
    Bars(#[from] PackedBarsError),
    #[error("cannot encode a derived value: {0}")]
    Encode(#[from] EncodeError),
    #[error("cannot encode a derived value as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Implements the conversion of Postgres statement errors to the variant `Db` of each given error enum.
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
    /// Text of a permanent error with its causes; `None` if a retry may help.
    pub fn halt_reason(&self) -> Option<String> {
        let permanent = matches!(
            self,
            Self::Halt(_)
                | Self::Sequence(_)
                | Self::Db(DbError::NewerSchema { .. } | DbError::OlderSchema { .. })
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

impl ConsumeError {
    /// Wraps an error of the NATS server: a request failed, or the delivery of messages failed.
    pub fn of_server(error: impl Into<async_nats::Error>) -> Self {
        Self::Consumer(error.into())
    }
}

impl ApplyError {
    /// Stable dead-letter code for a row or message that can never be applied. `None` if a retry may help.
    pub fn dead_letter_code(&self) -> Option<String> {
        let code = match self {
            Self::Db(DbError::Statement(error)) => return data_error_code(error),
            Self::Record(RecordError { source: PackedRecordsError::NulCharacter, .. }) => "nul_character",
            Self::Db(DbError::Encode(_)) | Self::Record(_) | Self::Packed { .. } => "not_storable",
            Self::Bars { .. } => "bad_columns",
            Self::Unstorable { code, .. } => code,
            Self::NewerVersion { .. } | Self::Ended(_) | Self::Log(_) | Self::Facts(_) | Self::Db(_) => {
                return None;
            }
        };
        Some(code.to_owned())
    }

    /// Stable dead-letter code for an error that the message may have caused. Used only if the error occurs repeatedly.
    pub fn repeated_code(&self) -> Option<String> {
        match self {
            Self::Ended(error) if error.is_panic() => Some("panicked".to_owned()),
            Self::Db(DbError::Statement(error)) => {
                let code = error.code()?;
                let damage = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code);
                let of_row = ROW_ERROR_CLASSES.contains(&&code.code()[..2]) && !damage;
                of_row.then(|| format!("sql_{}", code.code().to_lowercase()))
            }
            _ => None,
        }
    }
}

/// SQLSTATE classes that usually mean that a row is wrong, for example because a trigger refused it. Server faults
/// rarely have these classes.
const ROW_ERROR_CLASSES: [&str; 6] = ["0A", "2F", "38", "39", "P0", "YY"];

/// Stable dead-letter code for a statement error, if Postgres refused the data. `None` for any other error.
fn data_error_code(error: &tokio_postgres::Error) -> Option<String> {
    // An error without SQLSTATE comes from encoding a parameter or from a broken connection.
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
    fn an_unstorable_row_becomes_a_dead_letter_and_damaged_facts_do_not() {
        let unstorable =
            ApplyError::Unstorable { symbol: "AAA".to_owned(), code: "nul_character", reason: "because" };
        assert_eq!(unstorable.dead_letter_code().as_deref(), Some("nul_character"));
        let source = PackedRecordsError::UnknownVersion(9);
        let damaged = FactsError::Packed { symbol: "AAA".to_owned(), source };
        assert_eq!(ApplyError::Facts(damaged).dead_letter_code(), None);
    }

    #[test]
    fn a_gap_in_the_log_halts_and_an_ended_delivery_does_not() {
        assert!(RunError::Consume(ConsumeError::Gap { after: 1, found: 3 }).halt_reason().is_some());
        assert!(RunError::Consume(ConsumeError::Ended).halt_reason().is_none());
    }
}
