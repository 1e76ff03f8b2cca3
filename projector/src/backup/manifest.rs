//! Manifest of a backup. It is written last, so a folder without a manifest is an incomplete backup.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use chrono::{DateTime, NaiveDate, Utc};
use event_log::sequence::Sequence;
use serde::{Deserialize, Serialize};
use store::ids::GenerationId;
use store::market_settings::MarketSettings;

use super::tables::{self, BackupTable, Checksums, incomplete};

const NAME: &str = "backup.json";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    pub layout: u32,
    pub made_at: DateTime<Utc>,
    /// Version of the database schema.
    pub schema: i64,
    /// Sequence of the last log message that the backup contains.
    pub sequence: Sequence,
    /// Identity of the log stream; `None` if the projector never opened the log.
    pub genesis: Option<String>,
    /// Number of the served generation. A restore keeps the number, because API responses contain it.
    pub generation: GenerationId,
    #[serde(flatten)]
    pub market: MarketSettings,
    pub method_version: String,
    /// Source policy that belongs only to this generation, as JSON; `None` if the generation uses the live policy.
    pub own_policy: Option<String>,
    /// Live policy before a pending change, as JSON. The generation uses this policy until the change takes effect.
    /// `None` if no change is pending.
    pub held_policy: Option<String>,
    /// Rule parameters that differ from their defaults, as JSON.
    pub rules: String,
    /// Text that the operator gave as the reason for the generation's last promotion; `None` without a reason.
    pub note: Option<String>,
    /// Fixed market date of the generation (as-of date of the figures). `None` if the market date is always the newest
    /// session.
    pub as_of: Option<NaiveDate>,
    /// Exported tables, in the order in which a restore imports them.
    pub tables: Vec<BackupTable>,
    /// Discarded dead letters, by message sequence and item number (0 for the whole message).
    pub discarded: Vec<(Sequence, i32)>,
    /// Checksums of the read tables, by table name.
    pub read_tables: Checksums,
    /// BLAKE3 digest of the log file, in hexadecimal; `None` if the projector never opened the log.
    pub log: Option<String>,
}

impl BackupManifest {
    pub(super) const LAYOUT: u32 = 1;

    /// Writes the manifest atomically.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let (staging, path) = (folder.join("backup.partial"), folder.join(NAME));
        let failed = || path.display().to_string();
        let text = serde_json::to_string_pretty(self).with_context(failed)?;
        let mut file = tables::create_file(&staging)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
        std::fs::rename(&staging, &path).with_context(failed)
    }

    /// Reads the manifest and checks the digest of every file.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let shown = folder.display();
        let text = std::fs::read_to_string(folder.join(NAME))
            .with_context(|| format!("cannot restore {shown}: the backup is incomplete: backup.json"))?;
        let manifest: Self = serde_json::from_str(&text)
            .with_context(|| format!("cannot restore {shown}: cannot decode backup.json"))?;
        if manifest.layout != Self::LAYOUT {
            let (layout, known) = (manifest.layout, Self::LAYOUT);
            return Err(incomplete(folder, &format!("its layout is {layout}, this program reads {known}")));
        }
        let log = manifest.log.iter().map(|digest| (tables::log_path(folder), digest));
        let tables =
            manifest.tables.iter().map(|table| (tables::table_path(folder, &table.name), &table.digest));
        for (file, digest) in log.chain(tables) {
            if tables::digest_file(&file)? != *digest {
                let file = file.display();
                return Err(incomplete(folder, &format!("{file} has another digest than in the manifest")));
            }
        }
        Ok(manifest)
    }
}
