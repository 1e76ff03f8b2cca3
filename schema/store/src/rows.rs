//! Table rows of packed records and of years of bars.
//!
//! The table `record_ids` maps a vendor's record id to all symbols that records with this id have had.

use codec::bars::PackedBars;
use codec::digest;
use codec::records::RawObservation;
use market::event::Kind;
use tokio_postgres::{Error, GenericClient};

use crate::copy_row;

/// SQL text that finds the listings of addresses that several securities have, as rows of [`market::row::Listing`].
pub const LISTINGS: &str = include_str!("../queries/listings.sql");
const NOTE: &str = include_str!("../queries/record_ids_insert.sql");

copy_row! {
    /// Row of table `records`. Table `superseded_records` has the same columns.
    pub struct RecordsRow<'a> in "records" {
        /// Symbol of the records; empty for records of the whole market.
        symbol: &'a str,
        /// Kind of the records.
        kind: Kind,
        /// Feed of the records.
        source: &'a str,
        /// Packed set of the observations.
        packed: &'a [u8],
    }
}

/// Digest that identifies a vendor's record id in table `record_ids`.
pub fn id_digest(kind: Kind, source: &str, id: &str) -> i64 {
    digest([kind.as_str(), source, id].map(str::as_bytes))
}

/// Stores pairs of a vendor's record id and the symbol of the record in table `record_ids`. Each item of `observations`
/// is (symbol, kind, source, observations of this symbol). Returns the digests of the record ids.
pub async fn store_id_symbols<'a>(
    client: &impl GenericClient,
    observations: impl IntoIterator<Item = (&'a str, Kind, &'a str, &'a [RawObservation])>,
) -> Result<Vec<i64>, Error> {
    let mut named: Vec<(i64, &str)> = Vec::new();
    for (symbol, kind, source, observations) in observations {
        let ids = observations.iter().filter_map(|observation| observation.id.as_deref());
        named.extend(ids.map(|id| (id_digest(kind, source, id), symbol)));
    }
    // Sort by key, so that all writers lock the rows in the same order and each page of the index is visited once.
    named.sort_unstable();
    named.dedup();
    let (digests, symbols): (Vec<i64>, Vec<&str>) = named.into_iter().unzip();
    if !digests.is_empty() {
        client.execute(NOTE, &[&digests, &symbols]).await?;
    }
    Ok(digests)
}

copy_row! {
    /// Row of table `bars` of a fact set.
    #[expect(missing_docs, reason = "the other columns are those of `PackedBars`")]
    pub struct BarsRow<'a> in "bars" {
        /// Symbol of the bars in the feed. It may be a former symbol of the security.
        symbol: &'a str,
        /// Feed of the bars.
        source: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Newest day with a bar that is not retracted; `None` if all bars are retracted. Days are numbered from
        /// 0001-01-01, which is day 1.
        last_day: Option<i32>,
        /// Digest of the columns `days` to `extra`, without `versions`.
        digest: i64,
        days: &'a [u8],
        close: &'a [u8],
        range: &'a [u8],
        volume: &'a [u8],
        extra: &'a [u8],
        versions: &'a [u8],
    }
}

copy_row! {
    /// Row of table `prices` of a generation.
    #[expect(missing_docs, reason = "the other columns are those of `PackedBars`")]
    pub struct PricesRow<'a> in "prices" {
        /// Canonical symbol of the security.
        symbol: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Digest of the columns `days` to `extra`.
        digest: i64,
        days: &'a [u8],
        close: &'a [u8],
        range: &'a [u8],
        volume: &'a [u8],
        extra: &'a [u8],
    }
}

copy_row! {
    /// Row of table `superseded_bars` of a fact set.
    pub struct SupersededBarsRow<'a> in "superseded_bars" {
        /// Symbol of the bars in the feed. It may be a former symbol of the security.
        symbol: &'a str,
        /// Feed of the bars.
        source: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Number of the row among those of its symbol, source and year.
        part: i32,
        /// Superseded bars, with all their columns in one byte string.
        packed: &'a [u8],
    }
}

impl<'a> BarsRow<'a> {
    /// Row for the bars of one symbol, source and calendar year. `digest` is the digest of the columns `days` to
    /// `extra`.
    pub fn new(
        symbol: &'a str,
        source: &'a str,
        year: i32,
        last_day: Option<i32>,
        digest: i64,
        packed: &'a PackedBars,
    ) -> Self {
        let PackedBars { days, close, range, volume, extra, versions } = packed;
        Self { symbol, source, year, last_day, digest, days, close, range, volume, extra, versions }
    }
}

impl<'a> PricesRow<'a> {
    /// Row for the bars of one security and calendar year. `digest` is the digest of the columns `days` to `extra`.
    pub fn new(symbol: &'a str, year: i32, digest: i64, packed: &'a PackedBars) -> Self {
        let PackedBars { days, close, range, volume, extra, .. } = packed;
        Self { symbol, year, digest, days, close, range, volume, extra }
    }
}
