//! Statements of a transaction. Each is prepared once and executed for many chunks of securities.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use store::copy::{EncodeError, copy_encoded};
use store::db::DbError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement, Transaction};

/// Transaction with its prepared statements.
pub(crate) struct PreparedStatements<'t> {
    pub(crate) transaction: &'t Transaction<'t>,
    prepared: Mutex<HashMap<String, Statement>>,
}

impl<'t> PreparedStatements<'t> {
    pub(crate) fn new(transaction: &'t Transaction<'t>) -> Self {
        Self { transaction, prepared: Mutex::default() }
    }

    /// Executes a statement.
    pub(crate) async fn execute(&self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, Error> {
        self.transaction.execute(&self.prepare(text).await?, parameters).await
    }

    /// Runs a query.
    pub(crate) async fn query(
        &self,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        self.transaction.query(&self.prepare(text).await?, parameters).await
    }

    /// Copies encoded rows into a table.
    pub(crate) async fn copy(
        &self,
        text: &str,
        rows: impl IntoIterator<Item = Result<Bytes, EncodeError>>,
    ) -> Result<u64, DbError> {
        copy_encoded(self.transaction, &self.prepare(text).await?, rows).await
    }

    async fn prepare(&self, text: &str) -> Result<Statement, Error> {
        let known = self.lock().get(text).cloned();
        match known {
            Some(statement) => Ok(statement),
            None => {
                let statement = self.transaction.prepare(text).await?;
                self.lock().insert(text.to_owned(), statement.clone());
                Ok(statement)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        // The lock cannot be poisoned, because no code panics while it has the lock.
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
