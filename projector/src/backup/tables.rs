//! Files of a backup folder, which only the owner can read.
//!
//! Export and import of the tables that cannot be derived again: accounts, source policy and served data versions. Also
//! computes the checksums of the read tables.
//!
//! Manifest of a backup. It is written last, so a folder without a manifest is an incomplete backup.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use event_log::sequence::Sequence;
use futures::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use store::db::{DbError, generation_schema};
use store::ids::GenerationId;
use store::versions::MarketSettings;
use store::{FromRow, sql_row};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::{Client, Transaction};

const TABLES: &str = include_str!("../../queries/backup/tables.sql");
const READ_TABLES: &str = include_str!("../../queries/backup/read_tables.sql");
const COUNTERS: &str = include_str!("../../queries/backup/counters.sql");

pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join("log.export")
}

/// Path of the file with the rows of a table. `name` is the name of the table, qualified by its schema.
pub(super) fn table_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.copy", name.replace('"', "")))
}

/// Creates the folder. Fails if it is a link, or if it exists and is not empty.
pub(super) fn create_folder(folder: &Path) -> anyhow::Result<()> {
    let refuse = |reason: &str| {
        let folder = folder.display();
        Err(anyhow!("cannot create {folder}: {reason}; name a new folder"))
    };
    if fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink()) {
        return refuse("it is a link");
    }
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return refuse("the folder is not empty");
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| folder.display().to_string())
}

/// Creates a file that only its owner can read.
pub(super) fn create_file(path: &Path) -> anyhow::Result<File> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.with_context(|| path.display().to_string())
}

/// BLAKE3 digest of a file, in hexadecimal.
pub(super) fn digest_file(path: &Path) -> anyhow::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    read.with_context(|| path.display().to_string())?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Error for a backup that lacks something.
pub(super) fn incomplete(folder: &Path, reason: &str) -> anyhow::Error {
    anyhow!("cannot restore {}: the backup is incomplete: {reason}", folder.display())
}

/// Table in the backup. Its rows are in a separate file, in the text format of Postgres `copy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupTable {
    pub name: String,
    pub columns: Vec<String>,
    pub rows: u64,
    pub digest: String,
}

/// Schema of the accounts.
pub(super) const ACCOUNTS: &str = "accounts";
/// Schema of the market's tables in the backup.
pub(super) const MARKET: &str = "control";

impl BackupTable {
    /// True if the table is in the schema.
    fn is_in(&self, schema: &str) -> bool {
        self.name.split_once('.').is_some_and(|(name, _)| name == schema)
    }
}

/// Exports every table of the backup that is in `schema` into its own file.
pub(super) async fn export_tables(
    snapshot: &Client,
    schema: &str,
    folder: &Path,
) -> anyhow::Result<Vec<BackupTable>> {
    let mut exported = Vec::new();
    for row in snapshot.query(TABLES, &[&schema]).await? {
        let (name, columns): (String, Vec<String>) = (row.try_get("name")?, row.try_get("columns")?);
        let path = table_path(folder, &name);
        let failed = || path.display().to_string();
        let mut file = tokio::fs::File::from_std(create_file(&path)?);
        let statement = format!("copy (select {} from {name}) to stdout", columns.join(", "));
        let mut copied = pin!(snapshot.copy_out(&statement).await?);
        let mut rows = 0;
        while let Some(bytes) = copied.next().await {
            let bytes = bytes?;
            // Every line is one row, because `copy` writes a line end within a value as \n.
            rows += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            file.write_all(&bytes).await.with_context(failed)?;
        }
        file.flush().await.with_context(failed)?;
        file.sync_all().await.with_context(failed)?;
        exported.push(BackupTable { digest: digest_file(&path)?, name, columns, rows });
    }
    Ok(exported)
}

/// Imports the tables that are in `schema` into a migrated database without accounts.
///
/// Triggers are disabled for the import, because the backup already contains the rows that triggers would write.
pub(super) async fn import_tables(
    transaction: &Transaction<'_>,
    folder: &Path,
    tables: &[BackupTable],
    schema: &str,
) -> anyhow::Result<()> {
    let tables: Vec<&BackupTable> = tables.iter().filter(|table| table.is_in(schema)).collect();
    for BackupTable { name, .. } in &tables {
        transaction.batch_execute(&format!("alter table {name} disable trigger user")).await?;
    }
    // A migration fills some tables, such as plans. Replace those rows by the rows of the backup.
    for BackupTable { name, .. } in tables.iter().rev() {
        transaction.batch_execute(&format!("delete from {name}")).await?;
    }
    for table in &tables {
        import_table(transaction, folder, table).await?;
    }
    for row in transaction.query(COUNTERS, &[&schema]).await? {
        let (name, column): (&str, &str) = (row.try_get("name")?, row.try_get("column_name")?);
        let counter: &str = row.try_get("counter")?;
        let statement =
            format!("select setval($1::text::regclass, coalesce(max({column}), 0) + 1, false) from {name}");
        transaction.execute(&statement, &[&counter]).await?;
    }
    for BackupTable { name, .. } in &tables {
        transaction.batch_execute(&format!("alter table {name} enable trigger user")).await?;
    }
    Ok(())
}

async fn import_table(
    transaction: &Transaction<'_>,
    folder: &Path,
    table: &BackupTable,
) -> anyhow::Result<()> {
    let path = table_path(folder, &table.name);
    let failed = || path.display().to_string();
    let mut file = tokio::fs::File::open(&path).await.with_context(failed)?;
    let statement = format!("copy {} ({}) from stdin", table.name, table.columns.join(", "));
    let mut sink = pin!(transaction.copy_in::<_, Bytes>(&statement).await?);
    loop {
        let mut piece = Vec::with_capacity(1 << 16);
        if file.read_buf(&mut piece).await.with_context(failed)? == 0 {
            break;
        }
        sink.send(Bytes::from(piece)).await?;
    }
    let rows = sink.as_mut().finish().await?;
    if rows != table.rows {
        let reason = format!("{} has {rows} rows, not {}", path.display(), table.rows);
        return Err(incomplete(folder, &reason));
    }
    Ok(())
}

sql_row! {
    /// Checksum of a read table: the sum of its row digests. It does not depend on the order of the rows.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub(super) struct TableChecksum {
        pub(super) rows: i64,
        /// Two sums over the halves of the rows' MD5 digests, joined by a dot. They detect errors, not forgery.
        pub(super) sum: String,
    }
}

/// Checksums of the read tables of a generation, by table name.
pub(super) type Checksums = BTreeMap<String, TableChecksum>;

/// Computes the checksum of each read table of a generation, by table name.
pub(super) async fn compute_checksums(
    client: &Client,
    generation: GenerationId,
) -> Result<Checksums, DbError> {
    let schema = generation_schema(generation);
    let mut sums = Checksums::new();
    for row in client.query(READ_TABLES, &[&schema]).await? {
        let name: String = row.try_get("name")?;
        let statement = format!(
            "select count(*) as rows, concat_ws('.', \
               sum(('x' || substr(d.digest, 1, 15))::bit(60)::bigint), \
               sum(('x' || substr(d.digest, 17, 15))::bit(60)::bigint)) as sum \
             from (select md5(t::text) as digest from {schema}.{name} t) d"
        );
        sums.insert(name, TableChecksum::from_row(&client.query_one(&statement, &[]).await?)?);
    }
    Ok(sums)
}

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
        let mut file = create_file(&staging)?;
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
        let log = manifest.log.iter().map(|digest| (log_path(folder), digest));
        let tables = manifest.tables.iter().map(|table| (table_path(folder, &table.name), &table.digest));
        for (file, digest) in log.chain(tables) {
            if digest_file(&file)? != *digest {
                let file = file.display();
                return Err(incomplete(folder, &format!("{file} has another digest than in the manifest")));
            }
        }
        Ok(manifest)
    }
}
