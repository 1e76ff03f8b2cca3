//! Packed records in their table, and the symbols that a vendor's record has had.

use market::bars::digest;
use market::event::Kind;
use market::records::RawObservation;
use tokio_postgres::{Error, GenericClient};

use crate::copy_row;

const NOTE: &str = include_str!("../queries/record_ids_insert.sql");

copy_row! {
    /// A row of `records`.
    pub struct RecordsRow<'a> in "records" {
        /// The symbol that the rows name; empty for the whole market.
        symbol: &'a str,
        /// Kind of the records.
        kind: Kind,
        /// Feed they came from.
        source: &'a str,
        /// The set, packed.
        packed: &'a [u8],
    }
}

/// What stands for a vendor's record id in `record_ids`.
pub fn id_digest(kind: Kind, source: &str, id: &str) -> i64 {
    digest([kind.as_str(), source, id].map(str::as_bytes))
}

/// Notes the symbols of observations that have a vendor's id: of (symbol, kind, source, observations).
pub async fn note_ids<'a>(
    client: &impl GenericClient,
    said: impl IntoIterator<Item = (&'a str, Kind, &'a str, &'a [RawObservation])>,
) -> Result<Vec<i64>, Error> {
    let mut named: Vec<(i64, &str)> = Vec::new();
    for (symbol, kind, source, observations) in said {
        let ids = observations.iter().filter_map(|observation| observation.id.as_deref());
        named.extend(ids.map(|id| (id_digest(kind, source, id), symbol)));
    }
    // In the order of the table's key, where all writers lock and every page is visited once.
    named.sort_unstable();
    named.dedup();
    let (digests, symbols): (Vec<i64>, Vec<&str>) = named.into_iter().unzip();
    if !digests.is_empty() {
        client.execute(NOTE, &[&digests, &symbols]).await?;
    }
    Ok(digests)
}
