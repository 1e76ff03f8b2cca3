//! Candidate file: the record batches of a dry run. `projector audit --candidate` reports the effect that their load
//! would have.

use std::path::{Path, PathBuf};

use chrono::DateTime;
use event_log::archive::{ArchiveError, ArchiveWriter};
use event_log::message::LogMessage;
use event_log::sequence::Sequence;

use crate::batch::batch_spool::EncodedBatch;

/// Maximum number of rows. The projector holds the rows of a candidate in memory.
const MAX_ROWS: u64 = 2_000_000;

/// Candidate file in the folder for temporary files. It is deleted when the value is dropped.
pub(crate) struct CandidateFile {
    archive: Option<ArchiveWriter>,
    path: PathBuf,
    source: String,
    run: String,
    rows: u64,
    batches: u64,
}

impl CandidateFile {
    pub(crate) fn create(source: &str, run: &str) -> Result<Self, ArchiveError> {
        let name = format!("dividend-data-service-{}-{run}.candidate", std::process::id());
        let path = std::env::temp_dir().join(name);
        Ok(Self {
            archive: Some(ArchiveWriter::create(&path, String::new())?),
            path,
            source: source.to_owned(),
            run: run.to_owned(),
            rows: 0,
            batches: 0,
        })
    }

    /// Adds a batch of the input with this digest. Rows above the limit are left out.
    pub(crate) fn add_batch(
        &mut self,
        input_digest: &str,
        label: &str,
        batch: EncodedBatch,
    ) -> Result<(), ArchiveError> {
        self.rows += batch.rows;
        let Some(archive) = self.archive.as_mut().filter(|_| self.rows <= MAX_ROWS) else { return Ok(()) };
        self.batches += 1;
        let (envelope, payload) =
            batch.into_message((&self.source, &self.run), input_digest, label, self.batches);
        archive.append_message(&LogMessage {
            sequence: Sequence::default(),
            subject: envelope.kind.to_string(),
            headers: Some(envelope.to_headers()),
            malformed_headers: None,
            payload,
            stored_at: DateTime::UNIX_EPOCH,
        })
    }

    /// Completes the file and returns its path; `None` if the dry run has too many rows.
    pub(crate) fn finish(&mut self) -> Result<Option<&Path>, ArchiveError> {
        let Some(archive) = self.archive.take().filter(|_| self.rows <= MAX_ROWS) else { return Ok(None) };
        archive.finish()?;
        Ok(Some(&self.path))
    }
}

impl Drop for CandidateFile {
    fn drop(&mut self) {
        for path in [self.path.clone(), self.path.with_extension("partial")] {
            // An unfinished file has its temporary name, a finished one its final name.
            let _ = std::fs::remove_file(path);
        }
    }
}
