//! Current and former securities of a list of symbols. After a rename, or the correction of a rename, a symbol can
//! belong to another security.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use crate::parameters::SymbolList;
use crate::read::{QueryError, ServedGeneration, lookup};

const SECURITIES: &str = include_str!("../../../queries/changes/securities.sql");

/// Current and former securities of a list of symbols.
#[derive(Debug)]
pub(crate) struct ListedSecurities {
    /// Canonical symbols of the securities that now have a requested symbol. Also the requested symbols themselves,
    /// because an unused symbol may get a security later.
    pub(crate) named: BTreeSet<String>,
    /// Canonical symbols of the former securities. A former security had one of the listed symbols earlier, but has
    /// none of them now. Symbol changes that the journal no longer contains are not considered.
    pub(crate) former: BTreeSet<String>,
}

impl ListedSecurities {
    /// Finds the securities of the symbols in `list`, in the tables of `generation`.
    pub(crate) async fn find(generation: &ServedGeneration, list: &SymbolList) -> Result<Self, QueryError> {
        let (places, spellings) = list.to_columns();
        let rows = lookup::run_query(generation, SECURITIES, &[&places, &spellings]).await?;
        Self::from_rows(list, &rows)
    }

    /// Finds the securities of the symbols in `list`, in the snapshot of a transaction.
    pub(super) async fn find_in(
        transaction: &Transaction<'_>,
        list: &SymbolList,
    ) -> Result<Self, QueryError> {
        let (places, spellings) = list.to_columns();
        let statement = transaction.prepare_cached(SECURITIES).await?;
        let rows = transaction.query(&statement, &[&places, &spellings]).await?;
        Self::from_rows(list, &rows)
    }

    fn from_rows(list: &SymbolList, rows: &[Row]) -> Result<Self, QueryError> {
        let written = list.0.iter().filter_map(|symbol| symbol.candidates.first().cloned());
        let (mut named, mut former): (BTreeSet<String>, BTreeSet<String>) =
            (written.collect(), BTreeSet::new());
        for row in rows {
            let securities = if row.try_get("is_named")? { &mut named } else { &mut former };
            securities.insert(row.try_get("symbol")?);
        }
        former.retain(|security| !named.contains(security));
        Ok(Self { named, former })
    }

    /// Returns one list with all symbols in `named`, followed by all symbols in `former`.
    pub(crate) fn all(&self) -> Vec<String> {
        self.named.iter().chain(&self.former).cloned().collect()
    }
}
