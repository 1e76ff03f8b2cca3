//! Manifest of a backup. The manifest is written last, so that a folder without a manifest is incomplete.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use chrono::{DateTime, NaiveDate, Utc};
use event_log::sequence::Sequence;
use serde::{Deserialize, Serialize};
use store::ids::GenerationId;

use super::checksums::TableChecksum;
use super::error::BackupError;
use super::folder;

const NAME: &str = "backup.json";
const LAYOUT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    pub layout: u32,
    pub made_at: DateTime<Utc>,
    /// Version of the database schema.
    pub schema: i64,
    /// Sequence of the last log message that the backup contains.
    pub sequence: Sequence,
    /// Identity of the log; `None` if nothing was loaded yet.
    pub genesis: Option<String>,
    /// Number of the served generation. API responses contain it.
    pub generation: GenerationId,
    pub benchmark: String,
    pub method_version: String,
    /// Source policy stored for this generation alone, as JSON; `None` if it has none.
    pub own_policy: Option<String>,
    /// Source policy that the generation uses until a pending change of the live policy is applied, as JSON; `None` if
    /// no change is pending.
    pub held_policy: Option<String>,
    /// Rule parameters that differ from their defaults, as JSON.
    pub rules: String,
    /// Note of the promotion.
    pub note: Option<String>,
    /// Market date at which the generation is frozen; `None` if it follows the newest session.
    pub as_of: Option<NaiveDate>,
    /// Tables of accounts and policy, in the order in which a restore imports them.
    pub tables: Vec<BackupTable>,
    /// Discarded dead letters: sequence of the message, and number of the item in it.
    pub discarded: Vec<(Sequence, i32)>,
    /// Checksums of the read tables, by name.
    pub read_tables: BTreeMap<String, TableChecksum>,
    /// Digest of the file with the log; `None` if nothing was loaded yet.
    pub log: Option<String>,
}

/// Table of the backup, stored in its own file in the text format of `copy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupTable {
    pub name: String,
    pub columns: Vec<String>,
    pub rows: u64,
    pub digest: String,
}

impl BackupManifest {
    pub(super) const LAYOUT: u32 = LAYOUT;

    /// Writes the manifest atomically.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let (staging, path) = (folder.join("backup.partial"), folder.join(NAME));
        let failed = |source| BackupError::File { path: path.clone(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        let mut file = folder::create_file(&staging)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&staging, &path).map_err(failed)
    }

    /// Reads the manifest and checks the digest of every file.
    pub(super) fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(NAME);
        let incomplete = |reason: String| BackupError::Incomplete { path: folder.to_owned(), reason };
        let text = std::fs::read_to_string(&path)
            .map_err(|source| BackupError::ManifestFile { path: folder.to_owned(), source })?;
        let manifest: Self = serde_json::from_str(&text)
            .map_err(|source| BackupError::Manifest { path: folder.to_owned(), source })?;
        if manifest.layout != LAYOUT {
            return Err(incomplete(format!(
                "its layout is {}, this program reads {LAYOUT}",
                manifest.layout
            )));
        }
        let log = manifest.log.iter().map(|digest| (folder::log_path(folder), digest));
        let tables =
            manifest.tables.iter().map(|table| (folder::table_path(folder, &table.name), &table.digest));
        for (file, digest) in log.chain(tables) {
            if folder::digest_file(&file)? != *digest {
                return Err(incomplete(format!(
                    "{} has another digest than in the manifest",
                    file.display()
                )));
            }
        }
        Ok(manifest)
    }
}
