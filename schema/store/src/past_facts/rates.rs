//! Exchange rates of past facts: which pairs of currencies are loaded.

use std::collections::BTreeSet;

use codec::records;
use market::event::Kind;
use tokio_postgres::{GenericClient, ToStatement};

use super::{BatchIndex, FactHistory};
use crate::facts::FactsError;

impl FactHistory {
    /// Loads all exchange rates between some currencies. `rates` and `batches` are of [`FactHistory::statements`].
    ///
    /// # Errors
    /// Postgres rejects a query or is unreachable, or the stored facts are damaged.
    pub async fn load_rates<S: ToStatement + ?Sized + Sync + Send>(
        client: &impl GenericClient,
        [rates, batches]: [&S; 2],
        currencies: &BTreeSet<String>,
        index: &(impl BatchIndex + Sync),
    ) -> Result<Self, FactsError> {
        let history = Self::read(&client.query(rates, &[&pairs_of(currencies)]).await?)?;
        history.with_owners(client, batches, index).await
    }

    /// Currencies of the loaded facts.
    pub(super) fn currencies(&self) -> Result<BTreeSet<String>, FactsError> {
        let (mut currencies, mut symbols, mut described) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for ((symbol, kind, source), stored) in &self.records {
            symbols.insert(symbol);
            described.extend((*kind == Kind::Security).then_some(symbol));
            for packed in stored.parts() {
                let found = records::currencies(*kind, source, packed);
                currencies
                    .extend(found.map_err(|source| FactsError::Packed { symbol: symbol.clone(), source })?);
            }
        }
        // The prices of a security without reference record are in dollars.
        if symbols != described {
            currencies.insert("USD".to_owned());
        }
        Ok(currencies)
    }
}

/// Pairs of some currencies, of the euro and of the US dollar, which give all rates between these currencies. Empty for
/// fewer than two currencies.
pub(super) fn pairs_of(currencies: &BTreeSet<String>) -> Vec<String> {
    if currencies.len() < 2 {
        return Vec::new();
    }
    let mut all: BTreeSet<&str> = currencies.iter().map(String::as_str).collect();
    all.extend(["EUR", "USD"]);
    all.iter().flat_map(|base| all.iter().map(move |quote| format!("{base}{quote}"))).collect()
}
