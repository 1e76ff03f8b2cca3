//! Actor of an account change, and the locked account row.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use tokio_postgres::{Error, Row, Transaction};

use super::error::AccountError;
use crate::auth::tier::Tier;

const BY_ADDRESS: &str = include_str!("../../queries/accounts/lock_account.sql");
const BY_ID: &str = include_str!("../../queries/accounts/lock_own_account.sql");
const LIMITER: &str = include_str!("../../queries/accounts/lock_limiter.sql");
const RECORD: &str = include_str!("../../queries/accounts/record.sql");
/// How the audit log names the holder of an account.
const HOLDER: &str = "account";

/// Who changes which account.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Party<'a> {
    /// The operator, who names it by its address in lower case.
    Operator(&'a str),
    /// Its holder, who is signed in.
    Holder(i64),
}

/// An account whose row is locked until the transaction ends, so that changes of it follow each other.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) id: i64,
    pub(crate) email: String,
    pub(crate) active_keys: i64,
    pub(crate) subscription: Subscription,
    actor: Option<&'static str>,
}

/// What an account may do, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Subscription {
    pub(crate) tier: Tier,
    /// After it the account counts as `next_tier`; `None`: until changed.
    pub(crate) paid_until: Option<DateTime<Utc>>,
    pub(crate) next_tier: Tier,
}

impl Party<'_> {
    pub(crate) async fn lock(self, transaction: &Transaction<'_>) -> Result<Locked, AccountError> {
        let (row, actor) = match self {
            Self::Operator(email) => (transaction.query_opt(BY_ADDRESS, &[&email]).await?, None),
            Self::Holder(id) => (transaction.query_opt(BY_ID, &[&id]).await?, Some(HOLDER)),
        };
        let missing = || AccountError::NoAccount(self.named());
        let row = row.ok_or_else(missing)?;
        Ok(Locked {
            id: row.try_get("id")?,
            email: row.try_get("email")?,
            active_keys: row.try_get("active_keys")?,
            subscription: Subscription::read(&row)?,
            actor,
        })
    }

    fn named(self) -> String {
        match self {
            Self::Operator(email) => email.to_owned(),
            Self::Holder(id) => id.to_string(),
        }
    }
}

impl Locked {
    /// Due before a key is changed; calls of the account wait until the transaction ends.
    pub(crate) async fn hold_calls(&self, transaction: &Transaction<'_>) -> Result<(), AccountError> {
        transaction.execute(LIMITER, &[&self.id]).await?;
        Ok(())
    }

    /// True if its holder changes it, not the operator.
    pub(crate) fn is_own(&self) -> bool {
        self.actor.is_some()
    }

    /// Notes in the audit log what the transaction does. Details hold no secret.
    pub(crate) async fn record(
        &self,
        transaction: &Transaction<'_>,
        action: &str,
        details: Value,
    ) -> Result<(), AccountError> {
        transaction.execute(RECORD, &[&self.id, &action, &details, &self.actor]).await?;
        Ok(())
    }
}

impl Subscription {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            tier: row.try_get("tier")?,
            paid_until: row.try_get("paid_until")?,
            next_tier: row.try_get("next_tier")?,
        })
    }
}
