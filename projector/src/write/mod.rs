//! Writes of derived rows to the read tables and the journal: the tables with rows of securities, and the statements
//! that delete and write these rows. Each statement is prepared once in a transaction.

pub(crate) mod changed_records;
pub(crate) mod encoded_security;
pub mod fingerprints;
pub mod journal;
pub(crate) mod notices;
pub mod read_tables;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::NaiveDate;
use market::row::{
    DividendRow, EtfRow, FundamentalsRow, HoldingRow, Metrics, Quarantined, Quote, SplitRow, Stock, TableRow,
};
use store::copy::{EncodeError, copy_encoded};
use store::db::DbError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement, Transaction};

const DELETE_SINCE: &str = include_str!("../../queries/delete_since.sql");

/// Name of the table of dividends, the only one of [`TABLES`] in which rows can be replaced from a year on.
pub(crate) const DIVIDENDS: &str = "dividends";
/// Name of the table of splits.
pub(crate) const SPLITS: &str = "splits";
/// Name of the table with the adjustment factors of each security, as JSON.
pub(crate) const FACTORS: &str = "factors";

/// Read table. Each of its rows belongs to one security.
#[derive(Debug)]
pub(crate) struct ReadTable {
    pub(crate) name: &'static str,
    /// Name of the column with the symbol of the security.
    owner: &'static str,
    pub(super) columns: &'static [&'static str],
}

const fn table(name: &'static str, columns: &'static [&'static str]) -> ReadTable {
    ReadTable { name, owner: "symbol", columns }
}

/// Read tables, in the order in which the digests of a security are stored.
pub(crate) const TABLES: [ReadTable; 11] = [
    table("stocks", Stock::COLUMNS),
    table("quotes", Quote::COLUMNS),
    table("fundamentals", FundamentalsRow::COLUMNS),
    table("metrics", Metrics::COLUMNS),
    table(DIVIDENDS, DividendRow::COLUMNS),
    table(SPLITS, SplitRow::COLUMNS),
    table("quarantine", Quarantined::COLUMNS),
    table("etfs", EtfRow::COLUMNS),
    ReadTable { owner: "etf_symbol", ..table("holdings", HoldingRow::COLUMNS) },
    table("identities", &["symbol", "identity"]),
    table(FACTORS, &["symbol", "factors"]),
];

/// Names of derived values that are journaled although they have no table of their own. These are the ticker events,
/// the dividend status, and the dividend lists that contain the security.
pub(crate) const JOURNALED_VALUES: [&str; 3] = [EVENTS, STATUSES, "lists"];
/// Name of the ticker events.
pub(crate) const EVENTS: &str = "events";
/// Name of the dividend status.
pub(crate) const STATUSES: &str = "statuses";

/// Name of the digest of a security's dividend rows before last year. If it is unchanged, a restarted projector
/// replaces only the rows from last year on.
pub(crate) const PAST_DIVIDENDS: &str = "past_dividends";

/// Index of a table, a value of [`JOURNALED_VALUES`] or [`PAST_DIVIDENDS`] in a security's list of digests. `None` for
/// an unknown name.
pub(crate) fn digest_index(name: &str) -> Option<usize> {
    let mut names = TABLES.iter().map(|table| table.name).chain(JOURNALED_VALUES).chain([PAST_DIVIDENDS]);
    names.position(|known| known == name)
}

/// Rows of a read table that are replaced by new rows.
#[derive(Debug, Clone)]
pub(crate) struct ReplacedRows<'a> {
    pub symbols: Vec<&'a str>,
    /// First ex-date of the replaced dividend rows; `None` if all rows of the securities are replaced.
    pub since: Option<NaiveDate>,
}

impl<'a> ReplacedRows<'a> {
    /// All rows of some securities.
    pub(crate) fn all_rows(symbols: impl IntoIterator<Item = &'a str>) -> Self {
        Self { symbols: symbols.into_iter().collect(), since: None }
    }
}

impl ReadTable {
    /// Deletes rows of some securities.
    pub(crate) async fn delete(
        &self,
        statements: &PreparedStatements<'_>,
        replaced: &ReplacedRows<'_>,
    ) -> Result<(), DbError> {
        if replaced.symbols.is_empty() {
            return Ok(());
        }
        if let Some(since) = replaced.since {
            let statement = DELETE_SINCE.replace("{table}", self.name);
            statements.execute(&statement, &[&replaced.symbols, &since]).await?;
        } else {
            let statement = format!("delete from {} where {} = any ($1)", self.name, self.owner);
            statements.execute(&statement, &[&replaced.symbols]).await?;
        }
        Ok(())
    }

    /// Copies encoded rows into the table.
    pub(crate) async fn copy(
        &self,
        statements: &PreparedStatements<'_>,
        rows: Vec<Bytes>,
    ) -> Result<(), DbError> {
        let statement = format!("copy {} ({}) from stdin binary", self.name, self.columns.join(", "));
        statements.copy(&statement, rows.into_iter().map(Ok)).await?;
        Ok(())
    }
}

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
