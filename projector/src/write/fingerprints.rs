//! Fingerprints of published rows. They are loaded from the tables once, and then updated with every write.

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

/// Digests of the published rows of one security in one generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedFingerprints {
    /// `true` if the generation had no rows when the projector created its cache of the generation. The security then
    /// has no published row to delete.
    pub is_new: bool,
    /// Digest of the security's rows in each table, followed by the digests of the journaled values. Empty if the
    /// security was never written.
    pub tables: Vec<i64>,
    /// Digest of each published price year, by calendar year.
    pub years: BTreeMap<i32, i64>,
    /// Hashes of the values from which the published rows were encoded. `None` if this process did not derive these
    /// values.
    pub input_hashes: Option<InputHashes>,
}

/// Hashes of derived values before encoding. They change with the program version, so they are compared only within one
/// process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputHashes {
    /// Hash of the identity.
    pub identity: u64,
    /// Hash of all adjustment factors.
    pub factors: u64,
    /// Hash of the dividends of each year, by year of the ex-date.
    pub dividends: BTreeMap<i32, u64>,
    /// Hash of the bars of each calendar year. Years of which only the closes were loaded are absent.
    pub years: BTreeMap<i32, u64>,
}

impl InputHashes {
    /// Computes the hashes of derived values. `dividends` has the hash of the dividends of each year, by ex-date.
    /// `years` are the years whose bars are hashed, each with the index range of its bars.
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
        let mut factors = HASHER.build_hasher();
        derived.factors.iter().for_each(|factor| factor.hash_into(&mut factors));
        Self {
            identity: HASHER.hash_one(identity),
            factors: factors.finish(),
            dividends,
            years: years.iter().map(hash_year).collect(),
        }
    }
}

/// Hasher of all values whose hashes are compared. Its seed is fixed, so that equal values have equal hashes.
pub const HASHER: FixedState = FixedState::with_seed(0);

impl PublishedFingerprints {
    /// Digest of the security's rows in a table, or of a journaled value; `None` if the security was never written.
    pub fn digest(&self, table: &str) -> Option<i64> {
        self.tables.get(digest_index(table)?).copied()
    }

    /// Digest of the published dividend rows; `None` if the dividends have changed since these rows were encoded.
    /// `input_hashes` has the hash of the current dividends of each year. Unknown published hashes count as a change.
    pub fn unchanged_dividends(&self, input_hashes: &BTreeMap<i32, u64>) -> Option<i64> {
        self.input_hashes
            .as_ref()
            .filter(|served| served.dividends == *input_hashes)
            .and_then(|_| self.digest(DIVIDENDS))
    }

    /// `true` if the published bars of a year have the hash `hash`; `false` if a hash is missing.
    pub fn is_year_unchanged(&self, year: i32, hash: Option<&u64>) -> bool {
        let served = self.input_hashes.as_ref().and_then(|input_hashes| input_hashes.years.get(&year));
        served.is_some() && served == hash && self.years.contains_key(&year)
    }

    /// `false` if the security was last written as not listed: without a row in any table. Otherwise `true`, also for a
    /// security that was never written.
    pub fn is_listed(&self) -> bool {
        let nothing = digest([b""]);
        self.tables.is_empty() || self.tables.iter().any(|of_table| *of_table != nothing)
    }
}

/// Loads the fingerprints of some securities. A security without published rows has an entry without digests.
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
