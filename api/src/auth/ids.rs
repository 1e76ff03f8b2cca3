//! Ids of accounts, API keys and browser sessions, numbered by Postgres from 1.

use store::id_type;

id_type! {
    /// Id of an account.
    pub(crate) struct AccountId(i64);

    /// Id of an API key.
    pub(crate) struct KeyId(i64);

    /// Id of a browser session.
    pub(crate) struct SessionId(i64);
}
