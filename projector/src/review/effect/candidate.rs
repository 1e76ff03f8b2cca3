//! Candidate: record batches that `ingest load --dry-run` wrote to a file. They are compared as if their load had been
//! applied.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use event_log::archive::ArchiveReader;
use event_log::record_batch::{BatchId, RecordBatch};
use store::view::BatchOwners;
use tokio_postgres::Transaction;

/// Reads the batches of a candidate file that the facts do not contain yet.
pub(super) async fn read_candidate(
    transaction: &Transaction<'_>,
    path: &Path,
) -> anyhow::Result<Vec<RecordBatch>> {
    let mut archive = ArchiveReader::open_verified(path)?;
    let mut batches = Vec::new();
    while let Some(message) = archive.next_message()? {
        let mut headers = HeaderMap::new();
        for (name, value) in &message.headers {
            let name: HeaderName = name.parse().context("a header name")?;
            headers.append(name, value.parse::<HeaderValue>().context("a header value")?);
        }
        batches.extend(RecordBatch::decode(Some(&headers), &message.body)?);
    }
    let ids: Vec<&[u8]> = batches.iter().map(|batch| batch.id.0.as_slice()).collect();
    let owners = BatchOwners::load(transaction, &ids).await?;
    let known: BTreeSet<BatchId> = owners.places().map(|(id, _)| BatchId(*id)).collect();
    batches.retain(|batch| !known.contains(&batch.id));
    Ok(batches)
}
