//! Journal of published rows: a list of changed and removed rows, for clients with copies of the rows.
//!
//! Invariants:
//! - Only rows of the served generation are journaled, in the transaction that publishes them.
//! - Positions in the journal increase in commit order.
//! - Projected (estimated) dividends are not journaled, because they have no id.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use market::identity::is_plain_symbol;
use store::db::{DbError, generation_schema};
use store::ids::{GenerationId, JournalPosition};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::write::changed_records::ChangedRecords;
use crate::write::{
    DIVIDENDS, EVENTS, FACTORS, JOURNALED_VALUES, PreparedStatements, ReadTable, ReplacedRows, SPLITS,
    STATUSES, TABLES,
};

const SERVED: &str = include_str!("../../queries/journal_served.sql");
const IS_THERE: &str = "select where to_regclass($1) is not null";
const NEXT: &str = "select nextval('control.positions'), clock_timestamp()";
const PRUNE: &str = include_str!("../../queries/journal_prune.sql");
const KEEP: &str = include_str!("../../queries/journal_keep.sql");
const NEW_SYMBOLS: &str = include_str!("../../queries/journal_new_symbols.sql");
const ROWS: &str = include_str!("../../queries/journal_rows.sql");
const SYMBOLS: &str = include_str!("../../queries/journal_symbols.sql");
const ALL_ROWS: &str = include_str!("../../queries/journal_all_rows.sql");
const FORMER: &str = include_str!("../../queries/journal_former.sql");
const PROMOTE: &str = include_str!("../../queries/version_promote.sql");
const ADVANCE: &str = include_str!("../../queries/version_advance.sql");
const INPUTS: &str = include_str!("../../queries/version_inputs_insert.sql");
const VERSION: &str = include_str!("../../queries/versions_insert.sql");
/// Release of this program. It is stored with each data version, because a program of the same release can derive the
/// version again.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Names of the journaled read tables. Apart from tables, the derived values in
/// [`crate::write::JOURNALED_VALUES`] are journaled too.
pub(crate) const JOURNALED_TABLES: [&str; 3] = [DIVIDENDS, SPLITS, FACTORS];
/// Names of the tables that have one journal entry per changed row. Other journaled tables have one entry per security.
const COMPARED_TABLES: [&str; 2] = [DIVIDENDS, SPLITS];
/// If more rows are saved, they are truncated before further rows are saved. Every comparison scans all saved rows. A
/// scan of this many rows takes less time than a truncation.
const MAX_SAVED_ROWS: u64 = 5_000;

/// Journal of one transaction. All its entries have the same position.
#[derive(Debug)]
pub struct Journal {
    /// Position of the entries. Transactions that committed earlier have smaller positions.
    pub(crate) position: JournalPosition,
    /// Time at which the journal was opened.
    pub(crate) opened_at: DateTime<Utc>,
    /// `true` if the transaction writes the served generation. Rows of other generations are not journaled.
    served: bool,
    /// Number of saved rows by table, since the temporary table was created or truncated in this transaction.
    saved_rows: Mutex<HashMap<&'static str, u64>>,
    /// Changes of which notices are written.
    changed: Mutex<ChangedRecords>,
}

impl Journal {
    /// Takes the next position for a transaction that will write rows of `generation`.
    pub async fn open(transaction: &Transaction<'_>, generation: GenerationId) -> Result<Self, DbError> {
        let served = transaction.query_opt(SERVED, &[&generation]).await?.is_some();
        if served {
            transaction.execute(PRUNE, &[]).await?;
        }
        let row = transaction.query_one(NEXT, &[]).await?;
        let (position, opened_at) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Self { position, opened_at, served, saved_rows: Mutex::default(), changed: Mutex::default() })
    }

    /// Takes the changes of which notices are written. `None` if the generation is not served.
    pub(crate) fn take_changed(&self) -> Option<ChangedRecords> {
        self.served.then(|| std::mem::take(&mut *self.lock_changed()))
    }

    /// Stores the dividend statuses of some securities, before they are replaced. `schema` is the schema of the rows,
    /// with a point at its end, or empty for the first schema of the search path.
    pub(crate) async fn save_statuses(
        &self,
        statements: &PreparedStatements<'_>,
        schema: &str,
        symbols: &[&str],
    ) -> Result<(), DbError> {
        if self.served && !symbols.is_empty() {
            let statement =
                format!("select symbol, dividend_status from {schema}metrics where symbol = any ($1)");
            let rows = statements.query(&statement, &[&symbols]).await?;
            self.lock_changed().add_statuses(&rows)?;
        }
        Ok(())
    }

    /// Copies the rows in `replaced` to a temporary table, before new rows replace them. [`Journal::record_changes`]
    /// later compares the old rows with the new rows. A transaction saves the rows of a security only once.
    pub(crate) async fn save_rows(
        &self,
        statements: &PreparedStatements<'_>,
        table: &str,
        replaced: &ReplacedRows<'_>,
    ) -> Result<(), DbError> {
        let Some(table) = self.find_journaled(table) else { return Ok(()) };
        let kept = saved_name(table);
        let saved_rows = self.lock_saved_rows().get(table.name).copied();
        let mut saved_rows = match saved_rows {
            Some(rows) if rows <= MAX_SAVED_ROWS => rows,
            _ => {
                create_or_truncate(statements, table, &kept).await?;
                0
            }
        };
        if !replaced.symbols.is_empty() {
            let keep = statement_text(KEEP, table, &kept).replace("{columns}", &table.columns.join(", "));
            saved_rows += statements.execute(&keep, &[&replaced.symbols, &replaced.since]).await?;
        }
        self.lock_saved_rows().insert(table.name, saved_rows);
        Ok(())
    }

    /// Journals the changes of a table after its rows were replaced. For tables with one entry per changed row,
    /// compares the saved rows with the new rows. For other journaled tables, writes one entry per security.
    pub(crate) async fn record_changes(
        &self,
        statements: &PreparedStatements<'_>,
        table: &str,
        replaced: &ReplacedRows<'_>,
    ) -> Result<(), DbError> {
        if let Some(table) = self.find_journaled(table) {
            self.record_differences(statements, table, &saved_name(table), replaced).await?;
        } else if table == FACTORS {
            self.record_symbols(statements, table, &replaced.symbols).await?;
        }
        Ok(())
    }

    /// Writes one journal entry for each security in `symbols`. `kind` is the name of the changed table or journaled
    /// value.
    pub(crate) async fn record_symbols(
        &self,
        statements: &PreparedStatements<'_>,
        kind: &str,
        symbols: &[&str],
    ) -> Result<(), DbError> {
        if self.served && !symbols.is_empty() {
            statements.execute(SYMBOLS, &[&kind, &symbols, &self.position]).await?;
            if kind == EVENTS {
                self.lock_changed().add_events(symbols);
            }
        }
        Ok(())
    }

    /// Journals symbols that a security lost, and all rows of securities that gained or lost a symbol.
    pub(crate) async fn record_renamed(
        &self,
        statements: &PreparedStatements<'_>,
        renamed: &RenamedSymbols,
    ) -> Result<(), DbError> {
        let (symbols, former) = renamed.former_columns();
        if self.served && !symbols.is_empty() {
            statements.execute(FORMER, &[&symbols, &former, &self.position]).await?;
        }
        let securities = renamed.securities();
        if self.served && !securities.is_empty() {
            for table in COMPARED_TABLES {
                statements.execute(ALL_ROWS, &[&table, &securities, &self.position]).await?;
            }
            for value in [FACTORS].into_iter().chain(JOURNALED_VALUES) {
                self.record_symbols(statements, value, &securities).await?;
            }
        }
        Ok(())
    }

    /// Journals the changes of one table in a promotion: its differences from the formerly served generation `before`.
    /// The schema of the promoted generation must be first in the search path.
    pub(crate) async fn record_promotion(
        &self,
        statements: &PreparedStatements<'_>,
        before: GenerationId,
        table: &str,
        symbols: &[&str],
    ) -> Result<(), DbError> {
        if let Some(table) = self.find_journaled(table) {
            let before = format!("{}.{}", generation_schema(before), table.name);
            let replaced = ReplacedRows::all_rows(symbols.iter().copied());
            return self.record_differences(statements, table, &before, &replaced).await;
        }
        if table == STATUSES {
            self.save_statuses(statements, &format!("{}.", generation_schema(before)), symbols).await?;
        }
        self.record_symbols(statements, table, symbols).await
    }

    /// Stores the inputs of a derivation in table `version`, and records a new served data version. Returns the
    /// transaction id.
    pub(crate) async fn advance_version(
        &self,
        transaction: &Transaction<'_>,
        [sequence, as_of, policy]: [&(dyn ToSql + Sync); 3],
        changed: bool,
    ) -> Result<i64, DbError> {
        let values: [&(dyn ToSql + Sync); 5] = [sequence, as_of, policy, &self.position, &changed];
        let row = transaction.query_one(ADVANCE, &values).await?;
        if self.served && row.try_get::<_, bool>("is_new")? {
            list_version(transaction).await?;
        }
        Ok(row.try_get("writer")?)
    }

    /// Stores the journal position in table `version` of the promoted generation. Adds the data version of this
    /// generation to the list of served versions.
    pub(crate) async fn promote_version(&self, transaction: &Transaction<'_>) -> Result<(), DbError> {
        transaction.execute(PROMOTE, &[&self.position]).await?;
        list_version(transaction).await
    }

    fn lock_saved_rows(&self) -> MutexGuard<'_, HashMap<&'static str, u64>> {
        // The lock cannot be poisoned, because no code panics while it has the lock.
        self.saved_rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_changed(&self) -> MutexGuard<'_, ChangedRecords> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_journaled(&self, table: &str) -> Option<&'static ReadTable> {
        let is_compared = self.served && COMPARED_TABLES.contains(&table);
        TABLES.iter().find(|known| is_compared && known.name == table)
    }

    async fn record_differences(
        &self,
        statements: &PreparedStatements<'_>,
        table: &ReadTable,
        before: &str,
        replaced: &ReplacedRows<'_>,
    ) -> Result<(), DbError> {
        let mut symbols = replaced.symbols.clone();
        if replaced.since.is_none() {
            // A new security has no earlier rows, so its rows need no comparison.
            let statement = statement_text(NEW_SYMBOLS, table, before);
            let new = statements.query(&statement, &[&symbols, &self.position]).await?;
            let new: HashSet<&str> = new.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            symbols.retain(|symbol| !new.contains(symbol));
            self.lock_changed().add_new_symbols(table.name, new);
        }
        if !symbols.is_empty() {
            let values: [&(dyn ToSql + Sync); 3] = [&symbols, &replaced.since, &self.position];
            let rows = statements.query(&statement_text(ROWS, table, before), &values).await?;
            self.lock_changed().add_rows(table.name, &rows)?;
        }
        Ok(())
    }
}

async fn list_version(transaction: &Transaction<'_>) -> Result<(), DbError> {
    transaction.execute(INPUTS, &[&PROGRAM]).await?;
    transaction.execute(VERSION, &[&PROGRAM]).await?;
    Ok(())
}

/// Creates the temporary table for saved rows. If an earlier transaction of the connection has created it, truncates it.
async fn create_or_truncate(
    statements: &PreparedStatements<'_>,
    table: &ReadTable,
    kept: &str,
) -> Result<(), DbError> {
    let there = statements.query(IS_THERE, &[&format!("pg_temp.{kept}")]).await?;
    let statement = match there.is_empty() {
        true => format!("create temp table {kept} (like {}) on commit delete rows", table.name),
        false => format!("truncate {kept}"),
    };
    Ok(statements.transaction.batch_execute(&statement).await?)
}

/// Name of the temporary table for the rows that will be replaced.
fn saved_name(table: &ReadTable) -> String {
    format!("kept_{}", table.name)
}

/// Replaces the placeholders in an SQL text by table names and column names. `before` is the name of the table with the
/// old rows. Each column is named, because the order of columns may differ between generations.
fn statement_text(text: &str, table: &ReadTable, before: &str) -> String {
    let of = |side: &str| {
        let columns: Vec<String> = table.columns.iter().map(|column| format!("{side}.{column}")).collect();
        columns.join(", ")
    };
    text.replace("{table}", table.name)
        .replace("{before}", before)
        .replace("{d}", &of("d"))
        .replace("{b}", &of("b"))
}

const DIFFERING: &str = include_str!("../../queries/symbols_differing.sql");

/// Symbols that name another security than before.
#[derive(Debug, Default)]
pub(crate) struct RenamedSymbols {
    /// Pairs of a symbol and its former security.
    former: BTreeSet<(String, String)>,
    /// Securities that gained or lost a symbol. Changes of the security's own canonical symbol do not count.
    securities: BTreeSet<String>,
}

impl RenamedSymbols {
    /// Compares two sets of pairs (symbol, security): the pairs before a change, and the pairs after it.
    pub(crate) fn between(before: &BTreeSet<(&str, &str)>, after: &BTreeSet<(&str, &str)>) -> Self {
        let former = before.difference(after);
        // Leave out the canonical symbol of a security. If it was added or removed, the whole security was added or
        // removed, and all rows of the security are journaled anyway. A new identifier changes no row.
        let moved = before.symmetric_difference(after);
        let moved = moved.filter(|(symbol, security)| symbol != security && is_plain_symbol(symbol));
        Self {
            former: former.map(|(symbol, security)| ((*symbol).to_owned(), (*security).to_owned())).collect(),
            securities: moved.map(|(_, security)| (*security).to_owned()).collect(),
        }
    }

    /// Compares the symbols of the generation `before` with those of the generation first in the search path.
    pub(crate) async fn since_generation(
        transaction: &Transaction<'_>,
        before: GenerationId,
    ) -> Result<Self, DbError> {
        let statement = DIFFERING.replace("{before}", &generation_schema(before));
        let rows = transaction.query(&statement, &[]).await?;
        let (mut earlier, mut later) = (BTreeSet::new(), BTreeSet::new());
        for row in &rows {
            let symbol = row.try_get("symbol")?;
            earlier.extend(row.try_get::<_, Option<&str>>("before")?.map(|security| (symbol, security)));
            later.extend(row.try_get::<_, Option<&str>>("after")?.map(|security| (symbol, security)));
        }
        Ok(Self::between(&earlier, &later))
    }

    /// Symbols and their former securities, as two arrays of equal length.
    pub(crate) fn former_columns(&self) -> (Vec<&str>, Vec<&str>) {
        self.former.iter().map(|(symbol, security)| (symbol.as_str(), security.as_str())).unzip()
    }

    /// Securities that gained or lost a symbol. Changes of the security's own canonical symbol do not count.
    pub(crate) fn securities(&self) -> Vec<&str> {
        self.securities.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_moves_a_symbol_and_its_correction_moves_it_back() {
        let apart = BTreeSet::from([("NEW", "NEW"), ("OLD", "OLD")]);
        let renamed = BTreeSet::from([("NEW", "NEW"), ("OLD", "NEW")]);
        let forth = RenamedSymbols::between(&apart, &renamed);
        assert_eq!((forth.former_columns(), forth.securities()), ((vec!["OLD"], vec!["OLD"]), vec!["NEW"]));
        let back = RenamedSymbols::between(&renamed, &apart);
        assert_eq!((back.former_columns(), back.securities()), ((vec!["OLD"], vec!["NEW"]), vec!["NEW"]));
        let identified = BTreeSet::from([("NEW", "NEW"), ("OLD", "NEW"), ("isin:X", "NEW")]);
        let gained = RenamedSymbols::between(&renamed, &identified);
        assert!(gained.former.is_empty() && gained.securities.is_empty());
        let listed = RenamedSymbols::between(&BTreeSet::new(), &apart);
        assert!(listed.former.is_empty() && listed.securities.is_empty());
    }
}
