//! Rows of packed records, and the table `record_ids`. The table maps a vendor's record id to all symbols that records
//! with this id have had.

use codec::digest;
use codec::records::RawObservation;
use market::event::Kind;
use tokio_postgres::{Error, GenericClient};

use crate::copy_row;

const NOTE: &str = include_str!("../queries/record_ids_insert.sql");

copy_row! {
    /// Row of table `records`.
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

copy_row! {
    /// Row of table `superseded_records`.
    pub struct SupersededRecordsRow<'a> in "superseded_records" {
        /// Symbol of the records; empty for records of the whole market.
        symbol: &'a str,
        /// Kind of the records.
        kind: Kind,
        /// Feed of the records.
        source: &'a str,
        /// Packed set of the superseded observations.
        packed: &'a [u8],
    }
}

/// Digest that identifies a vendor's record id in table `record_ids`.
pub fn id_digest(kind: Kind, source: &str, id: &str) -> i64 {
    digest([kind.as_str(), source, id].map(str::as_bytes))
}

/// Stores in table `record_ids` which symbols the records with a vendor's id have. Each item of `observations` is
/// (symbol, kind, source, observations of the symbol). Returns the digests of the ids.
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
