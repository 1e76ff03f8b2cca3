//! Id of a record batch. It is a hash of the provenance of the rows, so loading the same feed again gives the same ids.

use std::fmt;

use market::event::RunManifest;

use crate::envelope::schema_name;
use crate::error::BatchError;

/// Name of the header with the message id. JetStream drops a message if another message with the same id was stored
/// within the deduplication window.
pub(crate) const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Id of a record batch: a hash of the source, the digest of the input, the batch number and the schema name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BatchId(pub [u8; 16]);

impl BatchId {
    /// Computes the id of a batch. `input_digest` is the digest of the whole input. `chunk` is the number of the batch
    /// among the batches of one kind from this input. `schema` is the schema name of the rows.
    pub fn from_provenance(source: &str, input_digest: &str, chunk: u64, schema: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [source.as_bytes(), input_digest.as_bytes(), &chunk.to_be_bytes(), schema.as_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(id)
    }
}

/// Ids of all record batches of a completed run, computed from its manifest.
pub fn batch_ids_of_run(run: &RunManifest) -> impl Iterator<Item = BatchId> {
    run.frames.iter().flat_map(move |cut| {
        let schema = schema_name(cut.kind);
        (0..cut.frames).map(move |chunk| BatchId::from_provenance(&run.source, &cut.input, chunk, &schema))
    })
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for BatchId {
    type Err = BatchError;
    fn from_str(text: &str) -> Result<Self, BatchError> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        number.map(|number| Self(number.to_be_bytes())).ok_or(BatchError::Header(MESSAGE_ID))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use market::event::{InputBatchCount, Kind, RunState};

    use super::*;

    #[test]
    fn a_manifest_promises_the_ids_of_its_batches() {
        let begun =
            RunManifest::started("r".to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        let cut = |kind, batches| InputBatchCount { input: "a".to_owned(), kind, frames: batches };
        let run = RunManifest {
            state: RunState::Completed,
            frames: vec![cut(Kind::Price, 2), cut(Kind::Dividend, 1)],
            ..begun
        };
        let ids: Vec<BatchId> = batch_ids_of_run(&run).collect();
        let of = |chunk, schema: &str| BatchId::from_provenance("eod", "a", chunk, schema);
        assert_eq!(ids, [of(0, "price.v1"), of(1, "price.v1"), of(0, "dividend.v1")]);
    }
}
