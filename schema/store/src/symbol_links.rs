//! Links between symbols that may name the same security.
//!
//! Symbols that are linked directly or through other symbols form a component. The facts of a component are enough to
//! find the securities that its symbols named in the past.

use std::collections::BTreeSet;

use codec::digest;
use market::event::Security;
use market::history::Observation;
use market::symbol::Symbol;
use tokio_postgres::{Error, GenericClient};

use crate::facts::{FactsError, load_known_symbols, load_securities};

const INSERT: &str = include_str!("../queries/symbol_links_insert.sql");
/// Selects true if the fact set has no links. Older program versions did not store links.
const IS_UNLINKED: &str = "select not exists (select from symbol_links) as unlinked";

/// Collected links, which [`SymbolLinks::store`] writes to Postgres. They are pairs (digest of the link, symbol). All
/// symbols with the same digest are linked.
#[derive(Debug, Default)]
pub struct SymbolLinks(BTreeSet<(i64, String)>);

impl SymbolLinks {
    /// Links the current symbol and the former symbols of a security record. All versions of a record have the same
    /// link digest, so their symbols are linked too.
    pub fn add_security(&mut self, observation: &Observation<Security>) {
        let record = &observation.record;
        let key = observation.security_ref.as_deref().or(observation.id.as_deref());
        let key = key.unwrap_or(record.symbol.as_str());
        let link = digest(["security", observation.source.as_str(), key].map(str::as_bytes));
        let former = record.former_symbols.iter().map(|former| &former.symbol);
        self.0.extend(former.chain([&record.symbol]).map(|symbol| (link, symbol.to_string())));
    }

    /// Links the spellings of a symbol, if it has more than one.
    pub fn add_spellings(&mut self, symbol: &Symbol) {
        let spellings: Vec<Symbol> = symbol.spellings().collect();
        if spellings.len() > 1 {
            let link = digest(["spellings", symbol.as_str()].map(str::as_bytes));
            self.0.extend(spellings.iter().map(|spelling| (link, spelling.to_string())));
        }
    }

    /// Stores the links. Existing links stay unchanged.
    ///
    /// # Errors
    /// Postgres rejects the statement or is unreachable.
    pub async fn store(self, client: &impl GenericClient) -> Result<(), Error> {
        if !self.0.is_empty() {
            let (links, symbols): (Vec<i64>, Vec<String>) = self.0.into_iter().unzip();
            client.execute(INSERT, &[&links, &symbols]).await?;
        }
        Ok(())
    }
}

/// Adds the links to a fact set that an older program version wrote without links.
///
/// # Errors
/// Postgres rejects a statement or is unreachable, or the stored facts are damaged.
pub async fn fill_symbol_links(client: &impl GenericClient) -> Result<(), FactsError> {
    if !client.query_one(IS_UNLINKED, &[]).await?.try_get::<_, bool>("unlinked")? {
        return Ok(());
    }
    let mut links = SymbolLinks::default();
    load_securities(client).await?.iter().for_each(|observation| links.add_security(observation));
    load_known_symbols(client).await?.iter().for_each(|symbol| links.add_spellings(symbol));
    Ok(links.store(client).await?)
}
