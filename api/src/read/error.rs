//! Errors of the read queries.

use std::sync::Arc;

use deadpool_postgres::{BuildError, PoolError};
use tokio_postgres::Error;

/// Reasons for a failed read. One failure concerns all look-ups of a batch, so the type is `Clone`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("No stock with symbol {0}")]
    UnknownSymbol(String),
    #[error("no generation was found yet")]
    NoGeneration,
    #[error("no generation is active")]
    NoneActive,
    /// The generation has no version row, because it is being built or dropped.
    #[error("generation {0} has no version")]
    Unversioned(i32),
    #[error("too many look-ups wait")]
    QueueFull,
    #[error("the look-up was given up")]
    GivenUp,
    #[error("no connection: {0}")]
    NoConnection(Arc<str>),
    #[error("Postgres does not answer")]
    Silent,
    #[error("the connection ended")]
    Ended,
    /// Postgres reports a transient condition: it starts, stops, or lacks a resource.
    #[error("{0}")]
    Transient(Arc<str>),
    /// Permanent error of a statement; a retry fails too.
    #[error("postgres: {0}")]
    Statement(Arc<str>),
    #[error("{0}")]
    Pool(Arc<str>),
}

impl QueryError {
    /// True for a transient error.
    pub(crate) fn is_transient(&self) -> bool {
        !matches!(self, Self::UnknownSymbol(_) | Self::Statement(_) | Self::Pool(_))
    }
}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        let chain = store::db::error_chain(&error).into();
        if is_transient(&error) { Self::Transient(chain) } else { Self::Statement(chain) }
    }
}

impl From<PoolError> for QueryError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            other => Self::NoConnection(other.to_string().into()),
        }
    }
}

impl From<BuildError> for QueryError {
    fn from(error: BuildError) -> Self {
        Self::Pool(error.to_string().into())
    }
}

/// True for a transient error: a lost connection, or an error of class 08, 53 or 57. An undefined schema or table is
/// transient too, because it belongs to a dropped generation.
fn is_transient(error: &Error) -> bool {
    let is_io = std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
    let reported = error.code().is_some_and(|code| {
        let code = code.code();
        ["08", "53", "57"].iter().any(|class| code.starts_with(class)) || matches!(code, "42P01" | "3F000")
    });
    error.is_closed() || is_io || reported
}
