//! Id of a record batch. It is a hash of the provenance of the rows, so loading the same feed again gives the same ids.

use std::fmt;

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
