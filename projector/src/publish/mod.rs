//! `projector publish`: the served version as Parquet files on an object store, from one database snapshot.
//!
//! The files are written first, then the manifest of the version, then the name of the newest version. A publisher that
//! was killed therefore leaves nothing that a reader sees.

mod column;
mod tables;
mod uploads;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use chrono::Utc;
use clap::Args;
pub(crate) use column::{ColumnType, ParquetColumn, ParquetWriter};
use market::row::JsonColumn;
use serde::Serialize;
use store::analysts::analyst_schema;
use store::db::{self, error_chain, generation_schema};
use store::find_rows;
use store::ids::{GenerationId, JournalPosition};
use store::published_files::{FileStore, LatestVersion, PublishedVersion, UnpublishedSecurities};
use store::versions::VersionName;
use telemetry::command_line::parse_duration;
use telemetry::report::Report;
use telemetry::{Shutdown, counted};
use tokio_postgres::Client;

use crate::settings::{DatabaseArgs, LIVE_FACTS};
use tables::TABLES;
use uploads::{FORMAT, Uploads};

const BEGIN: &str = include_str!("../../queries/publish/begin.sql");
const ACTIVE: &str = "select generation from active";
const LEFT_OUT: &str = "select symbol, sources from control.left_out($1)";
const SOURCES: &str = include_str!("../../queries/sources/list.sql");
const VERSION: &str = include_str!("../../queries/publish/version.sql");
/// The session of the publisher has the lock until it ends.
const LOCK: &str = "select pg_advisory_lock(hashtextextended('projector publish', 0))";
/// Maximum number of attempts to replace `latest.json`, and the pause after each.
const MAX_ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_secs(1);
const SET_LOCK_TIMEOUT: &str = "set lock_timeout = '30s'";
const SET_SEARCH_PATH: &str = "select set_config('search_path', $1, false)";

/// Arguments of `projector publish`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PublishArgs {
    /// Object store or folder: s3://BUCKET/PREFIX or file:DIR. Environment variables such as AWS_ACCESS_KEY_ID,
    /// AWS_REGION and AWS_ENDPOINT_URL have the credentials and the address of an S3 server. Each database needs its own
    /// prefix
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Publish every newer version, until the command is stopped
    #[arg(long)]
    follow: bool,
    /// Interval between two versions with --follow, for example 15m
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_duration, requires = "follow")]
    every: Duration,
    /// Time for which a version is kept after a newer one replaced it, for example 30d. Default: all versions are kept
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Result of one publication.
#[derive(Debug, Serialize)]
pub(crate) struct PublishSummary {
    data_version: String,
    /// False if the store had this version already.
    is_new: bool,
    rows: u64,
    files: u64,
    bytes: u64,
    /// Number of files that no earlier version has, and their bytes.
    new_files: u64,
    new_bytes: u64,
    removed_versions: u64,
    removed_files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<UnpublishedSecurities>,
}

/// Publishes the served version; with `--follow`, each newer version until the stop signal. Calls `print` after each
/// publication.
pub(crate) async fn run_publish(
    database: &DatabaseArgs,
    args: &PublishArgs,
    mut shutdown: Shutdown,
    print: impl Fn(&PublishSummary) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let Some(folder) = args.to.strip_prefix("file:") {
        let folder = folder.strip_prefix("//").unwrap_or(folder);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {folder}"))?;
    }
    let store = Arc::new(FileStore::open(&args.to)?);
    loop {
        let published = tokio::select! {
            published = publish_served(database, args, &store) => published,
            () = shutdown.wait() => bail!("interrupted; readers see the version that was published before"),
        };
        match published {
            Ok(published) if published.is_new || !args.follow => print(&published)?,
            Ok(_) => {}
            Err(error) if args.follow => {
                tracing::error!(error = error_chain(error.as_ref()), "cannot publish the served version");
            }
            Err(error) => return Err(error),
        }
        if !args.follow {
            return Ok(());
        }
        tokio::select! { () = tokio::time::sleep(args.every) => {}, () = shutdown.wait() => return Ok(()) }
    }
}

impl PublishSummary {
    pub(crate) fn report(&self, url: &str) -> Report {
        let Self { data_version, rows, files, bytes, new_files, new_bytes, .. } = self;
        let mut report = Report::new("");
        match self.is_new {
            true => report.add_fact(format!("published {data_version} to {url}")),
            false => report.add_fact(format!(
                "{url} has {data_version} already; licences stated since then apply from the next version on"
            )),
        }
        report.add_fact(format!("{rows} rows in {files} files, {bytes} bytes"));
        report.add_fact(format!("{new_files} files are new, {new_bytes} bytes"));
        if let Some(UnpublishedSecurities { sources, securities }) = &self.left_out {
            let (securities, sources) = (counted(*securities, "security"), sources.join(", "));
            report.add_fact(format!(
                "left out: {securities} with rows of {sources}, whose licence forbids redistribution"
            ));
        }
        if self.removed_versions + self.removed_files > 0 {
            report.add_fact(format!(
                "removed {} versions and {} files",
                self.removed_versions, self.removed_files
            ));
        }
        report
    }
}

async fn publish_served(
    database: &DatabaseArgs,
    args: &PublishArgs,
    store: &Arc<FileStore>,
) -> anyhow::Result<PublishSummary> {
    let client = db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await?;
    client.batch_execute(SET_LOCK_TIMEOUT).await?;
    client
        .execute(LOCK, &[])
        .await
        .context("cannot publish: another publisher of this database may be at work")?;
    client.batch_execute(BEGIN).await?;
    let id: GenerationId = client.query_one(ACTIVE, &[]).await?.try_get("generation")?;
    client.execute(SET_SEARCH_PATH, &[&format!("{}, control", generation_schema(id))]).await?;
    let mut version = load_version(&client).await?;
    let newest = match store.latest().await? {
        Some((latest, _)) => store.version(&latest.data_version).await?,
        None => None,
    };
    ensure!(
        newest.as_ref().is_none_or(|newest| newest.has_same_journal(&version)),
        "cannot publish {}: the store has versions of another or restored database; use another prefix",
        version.data_version
    );
    let is_new = newest.as_ref().is_none_or(|newest| newest.position < version.position);
    let (mut new_files, mut new_bytes) = (0, 0);
    match newest {
        Some(newest) if !is_new => version = newest,
        newest => (new_files, new_bytes) = publish_tables(&client, store, newest, &mut version).await?,
    }
    // Fails if the session, and with it the lock, was lost.
    client.batch_execute("commit").await?;
    if is_new {
        publish_manifest(store, &version).await?;
    }
    client.batch_execute("select").await?;
    let (removed_versions, removed_files) = match args.keep {
        Some(keep) => uploads::remove_old_versions(store, keep).await?,
        None => (0, 0),
    };
    let files = || version.tables.iter().flat_map(|table| &table.files);
    Ok(PublishSummary {
        rows: files().map(|file| file.rows).sum(),
        left_out: version.left_out.clone(),
        files: files().count() as u64,
        bytes: files().map(|file| file.bytes).sum(),
        data_version: version.data_version,
        is_new,
        new_files,
        new_bytes,
        removed_versions,
        removed_files,
    })
}

/// Describes the served version, still without its tables.
async fn load_version(client: &Client) -> anyhow::Result<PublishedVersion> {
    let row = client.query_one(VERSION, &[]).await?;
    let (generation, sequence) = (row.try_get("generation")?, row.try_get("sequence")?);
    let position: JournalPosition = row.try_get("position")?;
    let JsonColumn(rules) = row.try_get("rules")?;
    let is_repeated: bool = row.try_get("is_repeated")?;
    let name = VersionName { generation, sequence, position: is_repeated.then_some(position) };
    Ok(PublishedVersion {
        format: FORMAT,
        data_version: name.to_string(),
        generation,
        sequence,
        position,
        sync_from: format!("{}.{position}", row.try_get::<_, &str>("journal")?),
        as_of: row.try_get("as_of")?,
        method_version: row.try_get("method_version")?,
        rules,
        published_at: Utc::now(),
        expires_at: None,
        sources: Vec::new(),
        left_out: None,
        tables: Vec::new(),
    })
}

/// Writes the files of all tables that `newest` does not have, and adds the tables to `version`. Returns the number of
/// new files and of their bytes.
async fn publish_tables(
    client: &Client,
    store: &Arc<FileStore>,
    newest: Option<PublishedVersion>,
    version: &mut PublishedVersion,
) -> anyhow::Result<(u64, u64)> {
    let generation = generation_schema(version.generation);
    version.sources = find_rows(client, SOURCES, &[]).await?;
    let left_out = load_left_out(client, version).await?;
    let shards = tables::load_shards(client, &left_out).await?;
    let prices = tables::load_price_shards(client, shards.len(), &left_out).await?;
    let mut uploads = Uploads::new(store, newest, TABLES.len() * shards.len() + prices.len());
    let views = format!("{}, {generation}", analyst_schema(version.generation));
    client.execute(SET_SEARCH_PATH, &[&views]).await?;
    for table in TABLES {
        version.tables.push(tables::publish_table(client, table, &shards, &mut uploads).await?);
    }
    client.execute(SET_SEARCH_PATH, &[&generation]).await?;
    version.tables.push(tables::publish_prices(client, &prices, &mut uploads).await?);
    uploads.finish().await
}

/// Symbols of the securities that rest on a source which must not be redistributed. `version` gets their number.
async fn load_left_out(client: &Client, version: &mut PublishedVersion) -> anyhow::Result<HashSet<String>> {
    let (mut symbols, mut sources) = (HashSet::new(), BTreeSet::new());
    for row in client.query(LEFT_OUT, &[&version.generation]).await? {
        symbols.insert(row.try_get("symbol")?);
        sources.extend(row.try_get::<_, Vec<String>>("sources")?);
    }
    if !symbols.is_empty() {
        let sources = sources.into_iter().collect();
        version.left_out = Some(UnpublishedSecurities { sources, securities: symbols.len() });
    }
    Ok(symbols)
}

/// Makes a version visible: writes its manifest, then its name as the newest version.
async fn publish_manifest(store: &FileStore, version: &PublishedVersion) -> anyhow::Result<()> {
    let PublishedVersion { data_version, position, .. } = version;
    match store.create_version(version).await {
        Err(error) if error.is_conflict() => {
            let published = store.version(data_version).await?;
            ensure!(
                published.is_some_and(|published| published.has_same_rows(version)),
                "cannot publish {data_version}: the store has other data of this name; use a prefix for each database"
            );
        }
        created => created?,
    }
    let latest = LatestVersion { data_version: data_version.clone(), position: *position };
    for _ in 0..MAX_ATTEMPTS {
        let known = store.latest().await?;
        if known.as_ref().is_some_and(|(known, _)| known.position >= latest.position) {
            return Ok(());
        }
        match store.replace_latest(&latest, known.map(|(_, state)| state)).await {
            // Another publisher replaced it. It is newer each time.
            Err(error) if error.is_conflict() => tokio::time::sleep(PAUSE).await,
            replaced => return Ok(replaced?),
        }
    }
    bail!(
        "cannot name {data_version} as the newest version: the store refused each replacement of latest.json"
    )
}
