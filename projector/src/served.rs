//! What tells a security's served rows from others: read once, then known from what was written.

use std::collections::{BTreeMap, HashMap};

use market::bars::digest;
use market::symbol::Symbol;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

use crate::error::DeriveError;

const DIGESTS: &str = include_str!("../queries/digests.sql");
const YEARS: &str = include_str!("../queries/prices_digests.sql");

/// Digests of the rows that a generation serves of a security.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// Of each table's rows, in the order of the tables; empty when the security was never written.
    pub tables: Vec<i64>,
    /// Of each year of prices.
    pub years: BTreeMap<i32, i64>,
    /// Of each year of dividends, by the year of the ex-date; `None` until this projector has seen what is served.
    pub dividends: Option<BTreeMap<i32, i64>>,
}

impl Served {
    /// Whether a security has any row in any table, or was never written.
    pub fn is_listed(&self) -> bool {
        let nothing = digest([b""]);
        self.tables.is_empty() || self.tables.iter().any(|of_table| *of_table != nothing)
    }
}

/// Reads the digests of some securities, of which each gets an entry.
pub async fn load_served(
    client: &impl GenericClient,
    symbols: &[Symbol],
) -> Result<HashMap<Symbol, Served>, DeriveError> {
    let mut served: HashMap<Symbol, Served> =
        symbols.iter().map(|symbol| (symbol.clone(), Served::default())).collect();
    let symbols: Vec<&str> = symbols.iter().map(Symbol::as_str).collect();
    let parameters: [&(dyn ToSql + Sync); 1] = [&symbols];
    let (digests, years) =
        futures::try_join!(client.query(DIGESTS, &parameters), client.query(YEARS, &parameters))?;
    for row in &digests {
        served.entry(symbol(row.try_get("symbol")?)?).or_default().tables = row.try_get("tables")?;
    }
    for row in &years {
        let of = served.entry(symbol(row.try_get("symbol")?)?).or_default();
        of.years.insert(row.try_get("year")?, row.try_get("digest")?);
    }
    Ok(served)
}

fn symbol(text: &str) -> Result<Symbol, DeriveError> {
    text.parse().map_err(|_| DeriveError::Symbol(text.to_owned()))
}
