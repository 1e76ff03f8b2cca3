//! Creation of a backup: one database snapshot, and the log up to that snapshot's checkpoint.

use std::path::Path;
use std::time::Duration;

use chrono::Utc;
use event_log::archive::ArchiveWriter;
use event_log::sequence::Sequence;
use serde::Serialize;
use store::db::{self, DbError, generation_schema};
use tokio::time::Instant;
use tokio_postgres::{Client, Row};

use super::args::BackupArgs;
use super::checksums::compute_checksums;
use super::error::BackupError;
use super::manifest::BackupManifest;
use super::{folder, tables};
use crate::apply::consumer::LogReader;
use crate::settings::ProjectorSettings;

const POSITION: &str = include_str!("../../queries/backup/position.sql");
const DISCARDED: &str = include_str!("../../queries/backup/discarded.sql");
/// Maximum wait until the served tables have reached the checkpoint of the facts.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// Summary of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// Path of the backup.
    pub folder: String,
    /// Sequence of the last log message in the backup.
    pub sequence: i64,
    /// Number of log messages in the backup; 0 if no message was ever applied.
    pub messages: u64,
    /// Number of rows of accounts, keys, audit, plans and policy.
    pub rows: u64,
}

impl BackupReport {
    /// One line of text.
    pub fn summary(&self) -> String {
        format!("{}: the log up to {}, {} rows of accounts and policy", self.folder, self.sequence, self.rows)
    }
}

/// Creates a backup.
pub async fn create_backup(
    settings: &ProjectorSettings,
    args: &BackupArgs,
) -> Result<BackupReport, BackupError> {
    let client = db::connect(&db::owner_config(&settings.database.owner)?).await?;
    db::refuse_newer_schema(&client).await?;
    let position = begin_caught_up_snapshot(&client).await?;
    folder::create_folder(&args.folder)?;
    let (generation, sequence): (i32, i64) =
        (position.try_get("generation")?, position.try_get("checkpoint")?);
    let fact_set: &str = position.try_get("fact_set")?;
    let genesis: Option<String> = position.try_get("genesis_id")?;
    let tables = tables::export_tables(&client, &args.folder).await?;
    let discarded = client.query(DISCARDED, &[&fact_set]).await?;
    let discarded = discarded.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let discarded = discarded.collect::<Result<_, DbError>>()?;
    let read_tables = compute_checksums(&client, generation).await?;
    let (mut messages, mut log) = (0, None);
    if let Some(genesis) = &genesis {
        messages = export_log(settings, genesis, sequence, &folder::log_path(&args.folder)).await?;
        log = Some(folder::digest_file(&folder::log_path(&args.folder))?);
    }
    let manifest = BackupManifest {
        layout: BackupManifest::LAYOUT,
        made_at: Utc::now(),
        schema: db::newest_schema(),
        sequence,
        genesis,
        generation,
        benchmark: position.try_get("benchmark")?,
        method_version: position.try_get("method_version")?,
        own_policy: position.try_get("own_policy")?,
        held_policy: position.try_get("held_policy")?,
        rules: position.try_get("rules")?,
        note: position.try_get("note")?,
        as_of: position.try_get("as_of")?,
        tables,
        discarded,
        read_tables,
        log,
    };
    manifest.write(&args.folder)?;
    let rows = manifest.tables.iter().map(|table| table.rows).sum();
    Ok(BackupReport { folder: args.folder.display().to_string(), sequence, messages, rows })
}

/// Begins a snapshot in which the served tables have reached the checkpoint of the facts. Returns the row with
/// that position.
async fn begin_caught_up_snapshot(client: &Client) -> Result<Row, BackupError> {
    let begun = Instant::now();
    while begun.elapsed() < CATCH_UP_TIMEOUT {
        client.batch_execute("begin isolation level repeatable read read only").await?;
        if let Some(position) = load_caught_up_position(client).await? {
            return Ok(position);
        }
        client.batch_execute("rollback").await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(BackupError::NotCaughtUp(CATCH_UP_TIMEOUT.as_secs()))
}

async fn load_caught_up_position(client: &Client) -> Result<Option<Row>, DbError> {
    let position = client.query_one(POSITION, &[]).await?;
    let schema = generation_schema(position.try_get("generation")?);
    let derived = client.query_one(&format!("select sequence from {schema}.version"), &[]).await?;
    let level = !position.try_get::<_, bool>("dirty")?
        && derived.try_get::<_, i64>("sequence")? == position.try_get::<_, i64>("checkpoint")?;
    Ok(level.then_some(position))
}

/// Exports the log up to `end`. Returns the number of messages.
async fn export_log(
    settings: &ProjectorSettings,
    genesis: &str,
    end: i64,
    path: &Path,
) -> Result<u64, BackupError> {
    let context = settings.stream.connect("projector-backup").await?;
    let stream = settings.stream.open_existing(&context).await?;
    if event_log::stream::stream_identity(&stream)? != genesis {
        return Err(BackupError::Refused(format!(
            "cannot back up stream {}: the tables were derived from another log",
            settings.stream.nats_stream
        )));
    }
    let mut archive = ArchiveWriter::create(path, genesis.to_owned())?;
    let mut reader = LogReader::open(&stream, Sequence::default(), settings.batch_bytes).await?;
    let mut read = 0;
    while read < end {
        let batch = tokio::time::timeout(CATCH_UP_TIMEOUT, reader.next_batch()).await;
        let batch = batch.map_err(|_| {
            BackupError::Refused(format!("cannot read the log: no message after {read} was delivered"))
        })?;
        for message in batch?.messages.iter().filter(|message| message.sequence.to_i64() <= end) {
            let (sequence, headers) = (message.sequence, message.headers.as_ref());
            archive.append_message(sequence.to_u64(), &message.subject, headers, &message.payload)?;
            read = sequence.to_i64();
        }
    }
    Ok(archive.finish()?)
}
