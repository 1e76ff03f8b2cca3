//! Errors of reading rows.

use std::sync::Arc;

use deadpool_postgres::{BuildError, PoolError};
use tokio_postgres::Error;

/// Why rows could not be read; one failure is every waiting look-up's, so it can be cloned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("No stock with symbol {0}")]
    UnknownSymbol(String),
    #[error("no generation was found yet")]
    NoGeneration,
    #[error("no generation is active")]
    NoneActive,
    /// A generation without its version row is being built or dropped.
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
    /// What Postgres says of itself while it starts, stops, or is short of something.
    #[error("{0}")]
    Passing(Arc<str>),
    /// A statement that will not work when it is tried again either.
    #[error("postgres: {0}")]
    Statement(Arc<str>),
    #[error("{0}")]
    Pool(Arc<str>),
}

impl ReadError {
    /// True if trying again later makes sense.
    pub(crate) fn passes(&self) -> bool {
        !matches!(self, Self::UnknownSymbol(_) | Self::Statement(_) | Self::Pool(_))
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        let chain = store::db::error_chain(&error).into();
        if passes(&error) { Self::Passing(chain) } else { Self::Statement(chain) }
    }
}

impl From<PoolError> for ReadError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            other => Self::NoConnection(other.to_string().into()),
        }
    }
}

impl From<BuildError> for ReadError {
    fn from(error: BuildError) -> Self {
        Self::Pool(error.to_string().into())
    }
}

/// True if an error passes by itself: a lost connection, classes 08, 53 and 57, and an undefined schema or table, which
/// is a generation that was dropped.
fn passes(error: &Error) -> bool {
    let is_io = std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
    let reported = error.code().is_some_and(|code| {
        let code = code.code();
        ["08", "53", "57"].iter().any(|class| code.starts_with(class)) || matches!(code, "42P01" | "3F000")
    });
    error.is_closed() || is_io || reported
}
