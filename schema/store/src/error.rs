//! Database errors, with the Postgres message and a hint.

use postgres_types::Type;
use tokio_postgres::error::SqlState;

/// Errors of database access.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    #[error(
        "{variable} is not set: set it to the Postgres URL, for example postgres://user@127.0.0.1:5432/dividends"
    )]
    NotConfigured { variable: &'static str },
    #[error("{variable} is not a Postgres URL: {source}")]
    BadUrl { variable: &'static str, source: tokio_postgres::Error },
    #[error("cannot reach Postgres at {place}: {source}")]
    Unreachable { place: String, source: tokio_postgres::Error },
    #[error("cannot reach Postgres at {place}: it does not answer within {seconds} s")]
    Unanswered { place: String, seconds: u64 },
    #[error("cannot set up TLS to Postgres: {0}")]
    Tls(#[from] rustls::Error),
    #[error(
        "cannot use schema {found} of the database: this program knows up to {known}; run the newer program, or restore an older backup"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error("cannot use schema {found} of the database: this program needs {known}; run projector migrate")]
    OlderSchema { found: i64, known: i64 },
    #[error(
        "{variable} names a database without the tables of {schema}: accounts and market are in different databases (ACCOUNTS_DATABASE_URL)"
    )]
    OtherContents { schema: &'static str, variable: &'static str },
    #[error("cannot migrate the database: {0}")]
    Migration(#[from] refinery_core::Error),
    #[error("postgres refused a statement: {0}")]
    Statement(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl DbError {
    /// True if the server is unreachable or has closed the connection. False for any other error.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unanswered { .. } => true,
            Self::Statement(error) => error.is_closed(),
            _ => false,
        }
    }
}

/// Errors of encoding a row for COPY.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("cannot write a value as {ty}: {reason}")]
    Value { ty: Type, reason: String },
    #[error("cannot write a row of {0} columns: too many")]
    TooManyColumns(usize),
}

/// Text of an error with all its causes, because tokio-postgres alone prints only "db error". A cause is left out if
/// the text already contains it.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| cause.source()) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.extend([": ", &cause]);
        }
    }
    text
}

/// True if Postgres reports a full disk as the cause of an error.
pub fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_postgres = error.downcast_ref::<tokio_postgres::Error>();
    of_postgres.and_then(tokio_postgres::Error::code) == Some(&SqlState::DISK_FULL)
        || error.source().is_some_and(is_disk_full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot load: {source}; try again")]
    struct Outer {
        source: Middle,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("db error")]
    struct Middle {
        source: std::fmt::Error,
    }

    #[test]
    fn a_cause_is_named_once() {
        let error = Outer { source: Middle { source: std::fmt::Error } };
        let cause = std::fmt::Error;
        assert_eq!(error_chain(&error), format!("cannot load: db error; try again: {cause}"));
    }
}
