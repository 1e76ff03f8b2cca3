//! Symbols that name another security than before, for example after a rename. All rows of both securities are
//! journaled as changed, because clients follow the changes of a symbol.

use std::collections::BTreeSet;

use store::db::{DbError, generation_schema};
use store::ids::GenerationId;
use tokio_postgres::Transaction;

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
        // removed, and all rows of the security are journaled anyway.
        let moved = before.symmetric_difference(after).filter(|(symbol, security)| symbol != security);
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
        let listed = RenamedSymbols::between(&BTreeSet::new(), &apart);
        assert!(listed.former.is_empty() && listed.securities.is_empty());
    }
}
