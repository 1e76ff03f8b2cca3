//! Errors of account operations.

/// Result of an account operation.
pub(crate) type Result<T, E = AccountError> = std::result::Result<T, E>;

/// Errors of an account operation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("{0} is not an email address")]
    Email(String),
    #[error("account {0} does not exist")]
    NoAccount(String),
    #[error("account {0} already exists")]
    Taken(String),
    /// Refusal by a limit or another rule for accounts. The value is the complete message for the caller.
    #[error("{0}")]
    Refused(String),
    #[error("{}", store::db::error_chain(.0))]
    Database(#[from] tokio_postgres::Error),
}
