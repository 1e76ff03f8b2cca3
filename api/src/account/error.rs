//! Why an administration command was refused.

/// Why an administration command was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("{0} is not an email address")]
    Email(String),
    #[error("there is no account {0}")]
    NoAccount(String),
    #[error("there is an account {0} already")]
    Taken(String),
    #[error("{0}")]
    Refused(String),
}
