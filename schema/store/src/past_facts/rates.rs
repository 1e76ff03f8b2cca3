//! Exchange rates of past facts: which pairs of currencies are loaded.

use std::collections::{BTreeMap, BTreeSet};

use codec::records;
use market::event::Kind;

use super::stored_rows::StoredRecords;
use crate::facts::FactsError;

/// Currencies of some records, by symbol, kind and source.
pub(super) fn currencies_of(
    stored: &BTreeMap<(String, Kind, String), StoredRecords>,
) -> Result<BTreeSet<String>, FactsError> {
    let (mut currencies, mut symbols, mut described) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for ((symbol, kind, source), stored) in stored {
        symbols.insert(symbol);
        described.extend((*kind == Kind::Security).then_some(symbol));
        for packed in stored.parts() {
            let found = records::currencies(*kind, source, packed);
            currencies.extend(found.map_err(|source| FactsError::Packed { symbol: symbol.clone(), source })?);
        }
    }
    // The prices of a security without reference record are in dollars.
    if symbols != described {
        currencies.insert("USD".to_owned());
    }
    Ok(currencies)
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
