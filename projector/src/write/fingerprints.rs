//! Fingerprints of published rows, loaded from the tables and then updated with every write.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use codec::digest;
use foldhash::quality::FixedState;
use market::identity::Identity;
use market::metrics::DerivedRows;
use market::row::Fingerprint;
use market::symbol::Symbol;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

use crate::error::DeriveError;
use crate::write::table::{DIVIDENDS, digest_index};

const DIGESTS: &str = include_str!("../../queries/digests.sql");
const YEARS: &str = include_str!("../../queries/prices_digests.sql");

/// Digests of the rows that a generation publishes for a security.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedFingerprints {
    /// `true` if the security has no published row.
    pub is_new: bool,
    /// Digest of each table's rows, in the order of the tables; empty if the security was never written.
    pub tables: Vec<i64>,
    /// Digest of each price year.
    pub years: BTreeMap<i32, i64>,
    /// Hashes of the security's inputs. `None` if this process has not derived the published rows.
    pub input_hashes: Option<InputHashes>,
}

/// Hashes of values before encoding. They can be compared only within one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputHashes {
    /// Hash of the identity.
    pub identity: u64,
    /// Hash of all factors.
    pub factors: u64,
    /// Hash of each year of dividends, by ex-date.
    pub dividends: BTreeMap<i32, u64>,
    /// Hash of each year of bars that was read with all columns.
    pub years: BTreeMap<i32, u64>,
}

impl InputHashes {
    /// Computes the hashes of derived values. `dividends` has the hash of each year of dividends. `years` has the range
    /// of each year of bars.
    pub fn compute(
        identity: &Identity,
        derived: &DerivedRows,
        dividends: BTreeMap<i32, u64>,
        years: &[(i32, Range<usize>)],
    ) -> Self {
        let hash_year = |(year, range): &(i32, Range<usize>)| {
            let mut state = HASHER.build_hasher();
            derived.bars.hash_range(range.clone(), &mut state);
            (*year, state.finish())
        };
        Self {
            identity: HASHER.hash_one(identity),
            factors: hash_values(&derived.factors),
            dividends,
            years: years.iter().map(hash_year).collect(),
        }
    }
}

/// Hasher of all compared values, with a fixed seed.
pub const HASHER: FixedState = FixedState::with_seed(0);

fn hash_values(values: &[impl Fingerprint]) -> u64 {
    let mut state = HASHER.build_hasher();
    values.iter().for_each(|value| value.hash_into(&mut state));
    state.finish()
}

impl PublishedFingerprints {
    /// Digest of a table's rows.
    pub fn digest(&self, table: &str) -> Option<i64> {
        self.tables.get(digest_index(table)?).copied()
    }

    /// Digest of the published dividend rows; `None` if `input_hashes` differ from the hashes of these rows.
    pub fn unchanged_dividends(&self, input_hashes: &BTreeMap<i32, u64>) -> Option<i64> {
        self.input_hashes
            .as_ref()
            .filter(|served| served.dividends == *input_hashes)
            .and_then(|_| self.digest(DIVIDENDS))
    }

    /// `true` if the published year of bars has this hash.
    pub fn is_year_unchanged(&self, year: i32, hash: Option<&u64>) -> bool {
        let served = self.input_hashes.as_ref().and_then(|input_hashes| input_hashes.years.get(&year));
        served.is_some() && served == hash && self.years.contains_key(&year)
    }

    /// `true` if the security has a row in any table, or was never written.
    pub fn is_listed(&self) -> bool {
        let nothing = digest([b""]);
        self.tables.is_empty() || self.tables.iter().any(|of_table| *of_table != nothing)
    }
}

/// Loads the fingerprints of some securities. The result has an entry for each security.
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
        served.entry(parse_symbol(row.try_get("symbol")?)?).or_default().tables = row.try_get("tables")?;
    }
    for row in &years {
        let of = served.entry(parse_symbol(row.try_get("symbol")?)?).or_default();
        of.years.insert(row.try_get("year")?, row.try_get("digest")?);
    }
    Ok(served)
}

fn parse_symbol(text: &str) -> Result<Symbol, DeriveError> {
    text.parse().map_err(|_| DeriveError::Symbol(text.to_owned()))
}
