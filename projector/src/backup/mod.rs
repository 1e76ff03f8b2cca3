//! `projector backup` and `projector restore`: all data that cannot be derived again, at one position of the log.
//!
//! A backup contains the log, accounts, source policy, list of served data versions and discarded dead letters. It has
//! only checksums of the read tables. A restore derives the read tables again and compares the checksums.
//!
//! The projector does not use `pg_dump`, for these reasons:
//!
//! - `pg_dump` is missing on some machines, and refuses a server that is newer than itself.
//! - Tables, checkpoint and checksums must come from one database snapshot.
//! - A restore may use a newer schema. Its migrations insert rows, such as plans, which would conflict with a dump.
//!
//! The exported log ends at the checkpoint of the exported database snapshot.

mod restore;
mod tables;

use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, bail};
use async_nats::jetstream::Context;
use async_nats::jetstream::stream::Stream;
use chrono::Utc;
use event_log::archive::ArchiveWriter;
use event_log::sequence::Sequence;
use event_log::stream::StreamError;
use serde::Serialize;
use store::FromRow;
use store::db::{self, DbError, generation_schema};
use store::ids::GenerationId;
use store::versions::MarketSettings;
use tokio::time::Instant;
use tokio_postgres::{Client, Row};

use crate::apply::consumer::LogReader;
use crate::error::RunError;
use crate::settings::ProjectorSettings;
use tables::{ACCOUNTS, BackupManifest, BackupTable, MARKET};

pub use restore::{RestoreReport, restore_backup};

const POSITION: &str = include_str!("../../queries/backup/position.sql");
const DISCARDED: &str = include_str!("../../queries/backup/discarded.sql");
/// Maximum time for which a backup waits for the served tables to contain all applied facts. The same limit applies to
/// each wait for log messages during the export of the log.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which a backup checks if the served tables contain all applied facts.
const POSITION_INTERVAL: Duration = Duration::from_millis(500);

/// Summary of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// Path of the backup.
    pub folder: String,
    /// Sequence of the last log message in the backup.
    pub sequence: Sequence,
    /// Number of log messages in the backup; 0 if the projector never applied a message.
    pub messages: u64,
    /// Number of exported rows in all tables of the backup.
    pub rows: u64,
    /// Number of log messages that the backup lacks, because the projector had not applied them in time.
    pub missing_messages: u64,
}

impl BackupReport {
    /// Formats the summary as text lines.
    pub fn summary(&self) -> String {
        let Self { folder, sequence, rows, missing_messages, .. } = self;
        let mut text = format!(
            "backup in {folder}: the log up to message {sequence}, {rows} rows of accounts and policy"
        );
        if *missing_messages > 0 {
            text.push_str(&format!(
                "\n{missing_messages} later messages of the log are missing: the projector has not applied them; see projector status"
            ));
        }
        text
    }
}

/// Creates a backup.
pub async fn create_backup(settings: &ProjectorSettings, folder: &Path) -> anyhow::Result<BackupReport> {
    let client = db::connect_migrated(&db::owner_config(&settings.database.owner)?).await?;
    let stream = open_log(settings).await?;
    let last = stream.as_ref().map_or(0, |(_, stream)| stream.cached_info().state.last_sequence);
    let position = begin_caught_up_snapshot(&client, last).await?;
    tables::create_folder(folder)?;
    let (generation, sequence): (GenerationId, Sequence) =
        (position.try_get("generation")?, position.try_get("checkpoint")?);
    let mut tables = export_accounts(settings, &client, folder).await?;
    let fact_set: &str = position.try_get("fact_set")?;
    let genesis: Option<String> = position.try_get("genesis_id")?;
    tables.extend(tables::export_tables(&client, MARKET, folder).await?);
    let mut discarded = Vec::new();
    for row in client.query(DISCARDED, &[&fact_set]).await? {
        discarded.push((row.try_get(0)?, row.try_get(1)?));
    }
    let read_tables = tables::compute_checksums(&client, generation).await?;
    client.batch_execute("commit").await?;
    let (mut messages, mut log) = (0, None);
    if let Some(genesis) = &genesis {
        let name = &settings.applying.stream.nats_stream;
        let absent = || RunError::from(StreamError::Absent { stream: name.clone() });
        let opened = stream.ok_or_else(absent)?;
        let path = tables::log_path(folder);
        messages = export_log(settings, opened, genesis, sequence, &path).await?;
        log = Some(tables::digest_file(&path)?);
    }
    let manifest = BackupManifest {
        layout: BackupManifest::LAYOUT,
        made_at: Utc::now(),
        schema: db::newest_schema(),
        sequence,
        genesis,
        generation,
        market: MarketSettings::from_row(&position)?,
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
    manifest.write(folder)?;
    let rows = manifest.tables.iter().map(|table| table.rows).sum();
    let missing_messages = last.saturating_sub(sequence.to_u64());
    if missing_messages > 0 {
        tracing::warn!(
            missing_messages,
            sequence = sequence.to_i64(),
            "the backup lacks the end of the log; the projector has not applied it"
        );
    }
    Ok(BackupReport { folder: folder.display().to_string(), sequence, messages, rows, missing_messages })
}

/// Opens the log; `None` if the stream does not exist.
async fn open_log(settings: &ProjectorSettings) -> anyhow::Result<Option<(Context, Stream)>> {
    let context = settings.applying.stream.connect("projector-backup").await.map_err(RunError::from)?;
    match settings.applying.stream.open_existing(&context).await {
        Err(StreamError::Absent { .. }) => Ok(None),
        stream => Ok(Some((context, stream.map_err(RunError::from)?))),
    }
}

/// Begins a read-only transaction in which the served tables contain all applied facts. Fails after
/// [`CATCH_UP_TIMEOUT`]. Returns the row of [`POSITION`].
///
/// First gives a running projector time to apply the log up to `last`.
async fn begin_caught_up_snapshot(client: &Client, last: u64) -> anyhow::Result<Row> {
    let begun = Instant::now();
    while begun.elapsed() < CATCH_UP_TIMEOUT {
        client.batch_execute("begin isolation level repeatable read read only").await?;
        if let Some(position) = load_caught_up_position(client).await? {
            let checkpoint: Sequence = position.try_get("checkpoint")?;
            let behind = position.try_get::<_, bool>("follows")? && checkpoint.to_u64() < last;
            // After the time limit, the backup lacks the messages that are not applied.
            if !behind || begun.elapsed() + POSITION_INTERVAL >= CATCH_UP_TIMEOUT {
                return Ok(position);
            }
        }
        client.batch_execute("rollback").await?;
        tokio::time::sleep(POSITION_INTERVAL).await;
    }
    bail!(
        "cannot create a backup: the served tables lag behind the facts for {} s; wait until projector status prints no lag",
        CATCH_UP_TIMEOUT.as_secs()
    )
}

/// Exports the accounts: from the transaction of `market` if its database has them, otherwise from a snapshot of their
/// own database, which ends with this function.
async fn export_accounts(
    settings: &ProjectorSettings,
    market: &Client,
    folder: &Path,
) -> anyhow::Result<Vec<BackupTable>> {
    let owner = &settings.database.owner;
    let accounts = db::connect_accounts(owner).await?;
    if !owner.has_accounts_url() || db::is_same_database(market, &accounts).await? {
        return tables::export_tables(market, ACCOUNTS, folder).await;
    }
    accounts.batch_execute("begin isolation level repeatable read read only").await?;
    tables::export_tables(&accounts, ACCOUNTS, folder).await
}

async fn load_caught_up_position(client: &Client) -> Result<Option<Row>, DbError> {
    let position = client.query_one(POSITION, &[]).await?;
    let schema = generation_schema(position.try_get("generation")?);
    let derived = client.query_one(&format!("select sequence from {schema}.version"), &[]).await?;
    let level = !position.try_get::<_, bool>("dirty")?
        && derived.try_get::<_, Sequence>("sequence")? == position.try_get("checkpoint")?;
    Ok(level.then_some(position))
}

/// Exports the log up to the sequence `end`. Returns the number of exported messages.
async fn export_log(
    settings: &ProjectorSettings,
    (context, stream): (Context, Stream),
    genesis: &str,
    end: Sequence,
    path: &Path,
) -> anyhow::Result<u64> {
    if event_log::stream::stream_identity(&stream).map_err(RunError::from)? != genesis {
        let name = &settings.applying.stream.nats_stream;
        bail!("cannot back up stream {name}: the tables were derived from another log");
    }
    let mut archive = ArchiveWriter::create(path, genesis.to_owned())?;
    let mut reader =
        LogReader::open(&context, &stream, Sequence::default(), settings.applying.batch_bytes).await?;
    let mut read = Sequence::default();
    while read < end {
        let batch = tokio::time::timeout(CATCH_UP_TIMEOUT, reader.next_checked_batch()).await;
        let batch =
            batch.map_err(|_| anyhow!("cannot read the log: no message after {read} was delivered"))?;
        for message in batch?.messages.iter().filter(|message| message.sequence <= end) {
            archive.append_message(message)?;
            read = message.sequence;
        }
    }
    Ok(archive.finish()?)
}
