//! Errors of the read queries.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use deadpool_postgres::{BuildError, PoolError};
use market::row::Listing;
use store::db::DbError;
use store::ids::GenerationId;
use tokio_postgres::Error;

use crate::parameters::RequestedSymbol;

/// Address that names several listings. The text continues a sentence that begins with the parameter name.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} names several listings: {}; use one of these symbols", .symbol.text, join_listings(.listings))]
pub(crate) struct AmbiguousSymbol {
    pub(crate) symbol: RequestedSymbol,
    pub(crate) listings: Vec<Listing>,
}

fn join_listings(listings: &[Listing]) -> String {
    let names: Vec<String> = listings.iter().map(Listing::to_string).collect();
    names.join(", ")
}

/// Error of a read query. The type is `Clone`, because one failure is reported to all look-ups of a batch.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("No stock with symbol {}", .0.text)]
    UnknownSymbol(RequestedSymbol),
    #[error(transparent)]
    AmbiguousSymbol(Box<AmbiguousSymbol>),
    #[error("cannot read: no generation was found yet")]
    NoGeneration,
    #[error("cannot read: no generation is active; promote one")]
    NoneActive,
    /// The generation has no data version, because it is being built or dropped.
    #[error("cannot read generation {0}: it has no version row")]
    Unversioned(GenerationId),
    /// Another generation was promoted during the request.
    #[error("cannot read generation {0}: it is not served any more")]
    NotServed(GenerationId),
    #[error("cannot look up a row: the queue is full")]
    QueueFull,
    #[error("cannot look up a row: its task ended")]
    TaskEnded,
    #[error("cannot connect to Postgres")]
    NoConnection(#[source] Arc<DbError>),
    #[error("cannot take a connection from the pool")]
    NoPooledConnection(#[source] Arc<PoolError>),
    #[error("cannot read: Postgres timed out")]
    Timeout,
    #[error("cannot read: the connection to Postgres ended")]
    ConnectionEnded,
    /// The client named a data version that the primary does not have.
    #[error("cannot read: no data of the requested version exists")]
    VersionNotServed,
    /// The data version was served in the past, but this program cannot derive it again.
    #[error("cannot derive version {version}: it has rules {method} of program {program}")]
    VersionGone { version: String, method: String, program: String },
    #[error("Nothing was known at {0}")]
    NothingKnown(DateTime<Utc>),
    /// Transient failure of a statement, for example a lost connection, a restart of Postgres or a lack of memory.
    #[error("postgres cannot run a statement now")]
    Transient(#[source] Arc<Error>),
    /// Permanent error of a statement. A retry would fail too.
    #[error("postgres refused a statement")]
    Statement(#[source] Arc<Error>),
    #[error("cannot build the connection pool")]
    Pool(#[source] Arc<BuildError>),
    #[error("cannot render a change")]
    Render(#[source] Arc<serde_json::Error>),
}

impl QueryError {
    /// True if the same query may succeed on a retry.
    pub(crate) fn is_transient(&self) -> bool {
        !matches!(
            self,
            Self::UnknownSymbol(_)
                | Self::AmbiguousSymbol(_)
                | Self::VersionNotServed
                | Self::VersionGone { .. }
                | Self::NothingKnown(_)
                | Self::Statement(_)
                | Self::Pool(_)
                | Self::Render(_)
        )
    }
}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        if is_transient(&error) { Self::Transient(error.into()) } else { Self::Statement(error.into()) }
    }
}

impl From<serde_json::Error> for QueryError {
    fn from(error: serde_json::Error) -> Self {
        Self::Render(error.into())
    }
}

impl From<DbError> for QueryError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Unanswered { .. } => Self::Timeout,
            error => Self::NoConnection(error.into()),
        }
    }
}

impl From<PoolError> for QueryError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            other => Self::NoPooledConnection(other.into()),
        }
    }
}

impl From<BuildError> for QueryError {
    fn from(error: BuildError) -> Self {
        Self::Pool(error.into())
    }
}

/// True if a retry can succeed: lost connection, overloaded or stopping server, or dropped generation.
fn is_transient(error: &Error) -> bool {
    let is_io = std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
    // 08: connection exception. 53: insufficient resources. 57: operator intervention. Others: no such table or schema.
    let reported = error.code().is_some_and(|code| {
        let code = code.code();
        ["08", "53", "57"].iter().any(|class| code.starts_with(class)) || matches!(code, "42P01" | "3F000")
    });
    error.is_closed() || is_io || reported
}
