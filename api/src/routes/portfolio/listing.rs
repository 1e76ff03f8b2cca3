//! Listings of the securities in a broker's file, which names securities by ISIN.

use super::body_lines::TRANSACTIONS;
use super::transactions::Transactions;
use crate::parameters::RequestedSymbol;
use crate::read::{AmbiguousSymbol, QueryError, ServedGeneration, lookup};
use crate::render::envelope::Warning;

/// Finds the canonical symbol of each symbol; `None` for an unknown one. If a broker's file names a security with several
/// listings, a listing in the currency of the security's first row is used, with a warning.
pub(super) async fn resolve_listings(
    generation: &ServedGeneration,
    transactions: &mut Transactions,
) -> Result<(Vec<Option<String>>, Vec<Warning>), QueryError> {
    let mut warnings = Vec::new();
    if transactions.broker.is_some() {
        let resolved = lookup::find_symbols(generation, &transactions.symbols).await?;
        let unknown = transactions.symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
        let shared = lookup::find_shared(generation, unknown.map(|(symbol, _)| symbol)).await?;
        for AmbiguousSymbol { symbol, listings } in shared {
            let place = transactions.symbols.0.iter().position(|known| known.text == symbol.text);
            let currency = place.and_then(|place| transactions.currency_of(place));
            let matching = listings.iter().filter(|listing| currency == Some(listing.currency.as_str()));
            let Some((place, listing)) = place.zip(matching.min_by_key(|listing| &listing.symbol)) else {
                continue;
            };
            let message = format!("{} has several listings; {listing} is used", symbol.text);
            warnings.push(Warning { code: "several_listings", message, param: Some(TRANSACTIONS) });
            if let Ok(Some(known)) = RequestedSymbol::parse_item(TRANSACTIONS, &listing.symbol) {
                transactions.symbols.0[place] = known;
            }
        }
    }
    Ok((lookup::resolve_symbols(generation, &transactions.symbols).await?, warnings))
}
