//! What a backup says of itself. It is written last, so a folder without it is no backup.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::checksums::TableChecksum;
use super::error::BackupError;
use super::folder;

const NAME: &str = "backup.json";
const LAYOUT: u32 = 1;

/// A backup's description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    pub layout: u32,
    pub made_at: DateTime<Utc>,
    /// Version of the database's schema.
    pub schema: i64,
    /// Last message of the log that everything here contains.
    pub sequence: i64,
    /// Identity of the log; none when nothing was loaded yet.
    pub genesis: Option<String>,
    /// Number of the served generation, which answers name.
    pub generation: i32,
    pub benchmark: String,
    pub method_version: String,
    /// The source policy of the generation's own, and the one it keeps while a change of the live one waits.
    pub own_policy: Option<String>,
    pub held_policy: Option<String>,
    /// Rule parameters of the generation that are not their defaults, and why it was promoted.
    pub rules: String,
    pub note: Option<String>,
    /// Market date the generation is frozen at.
    pub as_of: Option<NaiveDate>,
    /// The kept tables, in the order in which they are brought back.
    pub tables: Vec<BackupTable>,
    /// Dead letters that were discarded: sequence and item.
    pub discarded: Vec<(i64, i32)>,
    /// The read tables, by name.
    pub read_tables: BTreeMap<String, TableChecksum>,
    /// Digest of the log's file.
    pub log: Option<String>,
}

/// A table in a file of Postgres's own text format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupTable {
    pub name: String,
    pub columns: Vec<String>,
    pub rows: u64,
    pub digest: String,
}

impl BackupManifest {
    pub(super) const LAYOUT: u32 = LAYOUT;

    /// Writes it beside what it describes, whole or not at all.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let (staging, path) = (folder.join("backup.partial"), folder.join(NAME));
        let failed = |source| BackupError::File { path: path.clone(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        let mut file = folder::create_file(&staging)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&staging, &path).map_err(failed)
    }

    /// Reads it, and checks every file that it names.
    pub(super) fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(NAME);
        let incomplete = |reason: String| BackupError::Incomplete { path: folder.to_owned(), reason };
        let text = std::fs::read_to_string(&path).map_err(|error| incomplete(format!("{NAME}: {error}")))?;
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| incomplete(format!("{NAME}: {error}")))?;
        if manifest.layout != LAYOUT {
            return Err(incomplete(format!("its layout is {}, not {LAYOUT}", manifest.layout)));
        }
        let log = manifest.log.iter().map(|digest| (folder::log_path(folder), digest));
        let tables =
            manifest.tables.iter().map(|table| (folder::table_path(folder, &table.name), &table.digest));
        for (file, digest) in log.chain(tables) {
            if folder::digest_file(&file)? != *digest {
                return Err(incomplete(format!("{} is not what was written", file.display())));
            }
        }
        Ok(manifest)
    }
}
