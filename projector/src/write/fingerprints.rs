//! Fingerprints (digests) of the published rows of a security. They are loaded from the database once. After every
//! write, they are updated in memory.

use std::collections::{BTreeMap, HashMap};

use codec::digest;
use foldhash::quality::FixedState;
use market::symbol::Symbol;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

use crate::error::DeriveError;
use crate::write::{DIVIDENDS, digest_index};

const DIGESTS: &str = include_str!("../../queries/digests.sql");
const YEARS: &str = include_str!("../../queries/prices_digests.sql");

/// Digests of the published rows of one security in one generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedFingerprints {
    /// `true` if the generation had no rows when the projector started to derive it. The security then has no published
    /// rows that must be deleted.
    pub is_new: bool,
    /// Digests of the security's rows and journaled values, in the order of `digest_index`. Empty if the security was
    /// never written, or if another process wrote it without any row.
    pub tables: Vec<i64>,
    /// Digest of the published prices, by calendar year.
    pub years: BTreeMap<i32, i64>,
    /// Hashes of the derived values from which the published rows were encoded. `None` if another process derived these
    /// values.
    pub derived: Option<DerivedHashes>,
}

/// Hashes of derived values before they are encoded, since to encode them takes much longer. They are compared only
/// within one process, because they may change with the program version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DerivedHashes {
    /// Hash of all dividends of each year of ex-dates.
    pub dividends: BTreeMap<i32, u64>,
    /// Hash of the prices of each calendar year that is not published as it is stored.
    pub prices: BTreeMap<i32, u64>,
}

/// Hasher of derived values. It has a fixed seed, so equal values always have equal hashes.
pub const HASHER: FixedState = FixedState::with_seed(0);

impl PublishedFingerprints {
    /// Digest of the rows in a table, or digest of a journaled value. `table` is the name of the table or value. `None`
    /// if the security was never written.
    pub fn digest(&self, table: &str) -> Option<i64> {
        self.tables.get(digest_index(table)?).copied()
    }

    /// Digest of the published dividend rows; `None` if the current dividends may differ.
    pub fn unchanged_dividends(&self, dividends: &BTreeMap<i32, u64>) -> Option<i64> {
        self.derived
            .as_ref()
            .filter(|published| published.dividends == *dividends)
            .and_then(|_| self.digest(DIVIDENDS))
    }

    /// `true` if the published prices of a year have this hash. `false` if their hash is unknown.
    pub fn are_prices_unchanged(&self, year: i32, hash: u64) -> bool {
        let published = self.derived.as_ref().and_then(|derived| derived.prices.get(&year));
        published == Some(&hash) && self.years.contains_key(&year)
    }

    /// `false` if the security was last written without any row, because it was not listed. Otherwise `true`, also if
    /// the security was never written.
    pub fn is_listed(&self) -> bool {
        self.tables.is_empty() || have_rows(&self.tables)
    }
}

/// `true` if a security with these digests has a row in any table.
pub(crate) fn have_rows(digests: &[i64]) -> bool {
    let nothing = digest([b""]);
    digests.iter().any(|of_table| *of_table != nothing)
}

/// Loads the fingerprints of some securities. A security without published rows gets fingerprints without digests.
pub async fn load_fingerprints(
    client: &impl GenericClient,
    symbols: &[Symbol],
) -> Result<HashMap<Symbol, PublishedFingerprints>, DeriveError> {
    let mut served: HashMap<Symbol, PublishedFingerprints> =
        symbols.iter().map(|symbol| (symbol.clone(), PublishedFingerprints::default())).collect();
    let symbols: Vec<&str> = symbols.iter().map(Symbol::as_str).collect();
    let parameters: [&(dyn ToSql + Sync); 1] = [&symbols];
    let (digests, years) =
        futures::try_join!(client.query(DIGESTS, &parameters), client.query(YEARS, &parameters))?;
    for row in &digests {
        served.entry(Symbol::from_stored(row.try_get("symbol")?)).or_default().tables =
            row.try_get("tables")?;
    }
    for row in &years {
        let of = served.entry(Symbol::from_stored(row.try_get("symbol")?)).or_default();
        of.years.insert(row.try_get("year")?, row.try_get("digest")?);
    }
    Ok(served)
}
