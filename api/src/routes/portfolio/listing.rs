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
    loop {
        let ambiguous = match lookup::resolve_symbols(generation, &transactions.symbols).await {
            Err(QueryError::AmbiguousSymbol(ambiguous)) if transactions.broker.is_some() => ambiguous,
            resolved => return Ok((resolved?, warnings)),
        };
        let AmbiguousSymbol { symbol, listings } = &*ambiguous;
        let place = transactions.symbols.0.iter().position(|known| known.text == symbol.text);
        let currency = place.and_then(|place| transactions.currency_of(place));
        let matching = listings.iter().filter(|listing| currency == Some(listing.currency.as_str()));
        let chosen = matching.min_by_key(|listing| &listing.symbol);
        let (Some(place), Some(listing)) = (place, chosen) else {
            return Err(QueryError::AmbiguousSymbol(ambiguous));
        };
        let message = format!("{} has several listings; {listing} is used", symbol.text);
        warnings.push(Warning { code: "several_listings", message, param: Some(TRANSACTIONS) });
        match RequestedSymbol::parse_item(TRANSACTIONS, &listing.symbol) {
            Ok(Some(known)) => transactions.symbols.0[place] = known,
            _ => return Err(QueryError::AmbiguousSymbol(ambiguous)),
        }
    }
}
