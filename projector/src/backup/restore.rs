//! Restore of a backup to empty servers. Every read table is compared with the checksums of the backup.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use chrono::{DateTime, Utc};
use event_log::archive::import_archive;
use event_log::sequence::Sequence;
use event_log::stream::StreamError;
use market::metrics::METHOD_VERSION;
use serde::Serialize;
use store::ids::GenerationId;
use store::{analysts, db};
use telemetry::Shutdown;
use tokio_postgres::Client;

use super::tables::{self, ACCOUNTS, BackupManifest, Checksums, MARKET};
use crate::daemon::run::run_projector;
use crate::error::RunError;
use crate::monitoring::ProjectorMetrics;
use crate::settings::{LIVE_FACTS, ProjectorSettings};

const HOLDS: &str = include_str!("../../queries/backup/holds.sql");
const STUDIED: &str = include_str!("../../queries/backup/studied.sql");
const END_SESSIONS: &str = "delete from accounts.sessions";
const END_LINKS: &str = "update accounts.links set used_at = now() where used_at is null";
/// Sets the Postgres sequence `control.positions` to the highest journal position in the restored data versions. (The
/// journal lists changed rows for clients.) New journal entries then get higher positions.
const POSITIONS: &str = "select setval('control.positions', max(position)) from control.versions";
const RESTORED: &str = include_str!("../../queries/backup/restored_accounts.sql");
const DISCARD: &str = include_str!("../../queries/backup/discard.sql");
/// Generation that a migration creates in an empty database.
const FIRST_GENERATION: GenerationId = GenerationId(1);

/// Summary of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// Sequence of the last restored log message.
    pub sequence: Sequence,
    /// List of the read tables whose rows differ from the backup.
    pub differing: Vec<DifferingTable>,
    /// Rule version of the backup, if this program has another rule version. The restored tables may then differ from
    /// the backup. `None` if both versions are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_rules: Option<String>,
    /// Counts of the restored accounts, keys and passwords.
    pub accounts: RestoredAccounts,
}

/// Numbers of restored accounts and credentials. A credential that was deleted or replaced after the backup is valid
/// again. The restore cannot list such credentials, because the backup does not contain later changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoredAccounts {
    /// Time of the backup. The restored database lacks all later changes.
    pub as_of: DateTime<Utc>,
    /// Number of accounts that are not deleted.
    pub accounts: i64,
    /// Number of valid keys. A key that was deleted or replaced after the backup is valid again.
    pub keys: i64,
    /// Number of passwords. A password that was changed after the backup has its old value again.
    pub passwords: i64,
    /// Number of dashboard sessions in the backup. The restore ended all of them.
    pub ended_sessions: u64,
    /// Number of unused one-time links in the backup. The restore ended all of them.
    pub ended_links: u64,
}

impl RestoredAccounts {
    fn summary(&self) -> String {
        let Self { as_of, accounts, keys, passwords, ended_sessions, ended_links } = self;
        let as_of = as_of.format("%Y-%m-%d %H:%M:%S UTC");
        let mut text = format!(
            "{accounts} accounts are restored as of {as_of}; {ended_sessions} sessions and {ended_links} one-time links were ended"
        );
        if *keys > 0 {
            text.push_str(&format!(
                "\n{keys} keys are valid again, also those deleted or replaced since then: api key list, api key delete"
            ));
        }
        if *passwords > 0 {
            text.push_str(&format!(
                "\n{passwords} passwords are valid again, also those changed since then: api account reset"
            ));
        }
        text
    }
}

/// One of the read tables whose rows differ from the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DifferingTable {
    pub table: String,
    pub rows: i64,
    pub rows_in_backup: i64,
}

impl RestoreReport {
    /// `true` if no table differs.
    pub fn is_identical(&self) -> bool {
        self.differing.is_empty()
    }

    /// Formats the summary as text lines.
    pub fn summary(&self) -> String {
        let mut text = format!("the log is applied up to {}", self.sequence);
        if let Some(rules) = &self.other_rules {
            text.push_str(&format!("; the backup has rules {rules}, this program {METHOD_VERSION}"));
        }
        if self.is_identical() {
            text.push_str("; every read table is identical");
        }
        for DifferingTable { table, rows, rows_in_backup } in &self.differing {
            text.push_str(&format!("\n{table} differs: {rows} rows, {rows_in_backup} in the backup"));
        }
        format!("{text}\n{}", self.accounts.summary())
    }
}

/// Restores a backup.
pub async fn restore_backup(
    settings: &ProjectorSettings,
    folder: &Path,
    shutdown: Shutdown,
) -> anyhow::Result<RestoreReport> {
    let manifest = BackupManifest::read(folder)?;
    let (schema, supported) = (manifest.schema, db::newest_schema());
    if schema > supported {
        bail!(
            "cannot restore a backup with schema {schema}: this program supports {supported}; use the version that created the backup, or a newer one"
        );
    }
    let database = &settings.database.owner;
    // Both are one database unless the accounts have a database of their own.
    let (market_owner, accounts_owner) = (db::owner_config(database)?, db::accounts_config(database)?);
    let mut client = db::connect(&market_owner).await?;
    let mut accounts_client = db::connect(&accounts_owner).await?;
    refuse_full_database(&client, "DATABASE_URL").await?;
    refuse_full_database(&accounts_client, "ACCOUNTS_DATABASE_URL").await?;
    refuse_full_log(settings, &manifest).await?;
    if manifest.log.is_some() {
        import_archive(&tables::log_path(folder), &settings.applying.stream).await?;
    }
    // The rows of the backup have the columns of its schema. Later migrations then convert them.
    db::migrate_to(&market_owner, schema).await?;
    db::migrate_to(&accounts_owner, schema).await?;
    let accounts = import_accounts(&mut accounts_client, folder, &manifest).await?;
    let transaction = client.transaction().await?;
    tables::import_tables(&transaction, folder, &manifest.tables, MARKET).await?;
    transaction.commit().await?;
    db::migrate(database, METHOD_VERSION, &manifest.market).await?;
    if manifest.generation != FIRST_GENERATION {
        renumber_generation(&mut client, &manifest).await?;
    }
    import_state(&client, &manifest).await?;
    let metrics = Arc::new(ProjectorMetrics::new().map_err(RunError::from)?);
    run_projector(settings, true, &metrics, shutdown).await?;
    for (sequence, item) in &manifest.discarded {
        client.execute(DISCARD, &[sequence, item]).await?;
    }
    let restored = tables::compute_checksums(&client, manifest.generation).await?;
    let differing = compare_checksums(&manifest.read_tables, &restored);
    let other_rules = (manifest.method_version != METHOD_VERSION).then_some(manifest.method_version);
    Ok(RestoreReport { sequence: manifest.sequence, differing, other_rules, accounts })
}

/// Fails if the database has data. `variable` is the environment variable with its URL.
async fn refuse_full_database(client: &Client, variable: &str) -> anyhow::Result<()> {
    let migrated = client.query_one("select to_regclass('accounts.accounts') is not null", &[]).await?;
    if !migrated.try_get::<_, bool>(0)? {
        return Ok(());
    }
    let row = client.query_one(HOLDS, &[]).await?;
    let (checkpoint, accounts): (i64, i64) = (row.try_get("checkpoint")?, row.try_get("accounts")?);
    let policy: i64 = row.try_get("policy")?;
    if checkpoint == 0 && accounts == 0 && policy == 0 {
        return Ok(());
    }
    bail!(
        "cannot restore into this database: it is not empty ({accounts} accounts, {policy} policy rules, log applied up to {checkpoint}); create a new database (createdb) and set {variable} to it"
    )
}

/// Fails if the stream contains messages that do not belong to the log of the backup. Messages from an interrupted
/// restore of the same backup are accepted.
async fn refuse_full_log(settings: &ProjectorSettings, manifest: &BackupManifest) -> anyhow::Result<()> {
    let context = settings.applying.stream.connect("projector-restore").await.map_err(RunError::from)?;
    let stream = match settings.applying.stream.open_existing(&context).await {
        Err(StreamError::Absent { .. }) => return Ok(()),
        stream => stream.map_err(RunError::from)?,
    };
    let last = stream.cached_info().state.last_sequence;
    if last == 0
        || Some(event_log::stream::stream_identity(&stream).map_err(RunError::from)?) == manifest.genesis
    {
        return Ok(());
    }
    bail!(
        "cannot restore into stream {}: it has {last} messages of another log; set NATS_STREAM and NATS_SUBJECT_PREFIX to a stream that does not exist",
        settings.applying.stream.nats_stream
    )
}

/// Gives the served generation the number that it has in the backup, because API responses contain the number.
async fn renumber_generation(client: &mut Client, manifest: &BackupManifest) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction.batch_execute("set local role dds_projector").await?;
    let (id, market) = (manifest.generation, &manifest.market);
    db::create_generation(&transaction, id, LIVE_FACTS, "tailing", METHOD_VERSION, market).await?;
    transaction.execute("update control.active set generation = $1, previous = null", &[&id]).await?;
    analysts::point_analysts(&transaction).await?;
    let (views, tables) =
        (analysts::analyst_schema(FIRST_GENERATION), db::generation_schema(FIRST_GENERATION));
    transaction.batch_execute(&format!("drop schema {views} cascade; drop schema {tables} cascade")).await?;
    transaction.execute("delete from control.generations where id = $1", &[&FIRST_GENERATION]).await?;
    Ok(transaction.commit().await?)
}

/// Imports the accounts of the backup.
async fn import_accounts(
    client: &mut Client,
    folder: &Path,
    manifest: &BackupManifest,
) -> anyhow::Result<RestoredAccounts> {
    let transaction = client.transaction().await?;
    tables::import_tables(&transaction, folder, &manifest.tables, ACCOUNTS).await?;
    // A session that ended after the backup must not become valid again. A link that was used after the backup must
    // stay used.
    let ended_sessions = transaction.execute(END_SESSIONS, &[]).await?;
    let ended_links = transaction.execute(END_LINKS, &[]).await?;
    let row = transaction.query_one(RESTORED, &[]).await?;
    let accounts = RestoredAccounts {
        as_of: manifest.made_at,
        accounts: row.try_get("accounts")?,
        keys: row.try_get("keys")?,
        passwords: row.try_get("passwords")?,
        ended_sessions,
        ended_links,
    };
    transaction.commit().await?;
    Ok(accounts)
}

/// Restores the position of the journal, and the state of the served generation.
async fn import_state(client: &Client, manifest: &BackupManifest) -> anyhow::Result<()> {
    client.query_one(POSITIONS, &[]).await?;
    let BackupManifest { generation, own_policy, held_policy, as_of, rules, note, .. } = manifest;
    client.execute(STUDIED, &[generation, own_policy, held_policy, as_of, rules, note]).await?;
    Ok(())
}

fn compare_checksums(before: &Checksums, now: &Checksums) -> Vec<DifferingTable> {
    let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
    let rows = |sums: &Checksums, name: &String| sums.get(name).map_or(0, |sum| sum.rows);
    let differing = names.filter(|name| before.get(*name) != now.get(*name)).map(|name| DifferingTable {
        table: name.clone(),
        rows: rows(now, name),
        rows_in_backup: rows(before, name),
    });
    differing.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tables::TableChecksum;
    use super::*;

    fn sums(tables: &[(&str, i64, &str)]) -> Checksums {
        let sum = |(name, rows, sum): &(&str, i64, &str)| {
            ((*name).to_owned(), TableChecksum { rows: *rows, sum: (*sum).to_owned() })
        };
        tables.iter().map(sum).collect()
    }

    #[test]
    fn differing_tables_are_listed() {
        let before = sums(&[("metrics", 3, "1.2"), ("quotes", 3, "5.6"), ("stocks", 3, "7.8")]);
        let now =
            sums(&[("metrics", 3, "1.2"), ("quotes", 3, "5.7"), ("stocks", 2, "7.8"), ("newer", 1, "0.0")]);
        let named: Vec<String> = compare_checksums(&before, &now).into_iter().map(|one| one.table).collect();
        assert_eq!(named, ["quotes", "stocks", "newer"]);
        assert!(compare_checksums(&before, &before).is_empty());
    }
}
