//! `projector export --parquet DIR`: a generation as Parquet files, from one database snapshot.
//!
//! The files are written to a temporary folder, which is renamed to `DIR` at the end. `DIR` therefore never contains an
//! incomplete export.

mod column;
mod file_writer;
mod manifest;
mod rows;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use anyhow::{Context, anyhow, bail};
use clap::Args;
pub(crate) use column::{ColumnType, ParquetColumn};
use event_log::sequence::Sequence;
pub(crate) use file_writer::ParquetFileWriter;
use file_writer::{ExportedFile, PartialFolder};
pub use manifest::{ExportManifest, LeftOut, TableManifest};
use market::row::JsonColumn;
use store::analysts::analyst_schema;
use store::db::{self, generation_schema};
use store::ids::GenerationId;
use telemetry::report::Report;
use telemetry::{Shutdown, counted};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::progress::ProgressReport;
use crate::settings::{DatabaseArgs, LIVE_FACTS};

const ACTIVE: &str = "select generation from active";
const BEGIN: &str = include_str!("../../queries/export/begin.sql");
const GENERATION: &str = include_str!("../../queries/export/generation.sql");
const LEFT_OUT: &str = "select symbol, sources from control.left_out($1)";
const SNAPSHOT: &str = "select pg_export_snapshot()";
const SET_SEARCH_PATH: &str = "select set_config('search_path', $1, false)";

/// Arguments of `projector export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Folder to create; an existing folder must be empty
    #[arg(long, value_name = "DIR")]
    pub parquet: PathBuf,
    /// Number of the generation; default: the served generation
    #[arg(long, value_name = "N")]
    pub generation: Option<GenerationId>,
    /// Print the manifest as JSON
    #[arg(long)]
    pub json: bool,
}

/// Exports a generation and returns the manifest.
pub async fn export_generation(
    database: &DatabaseArgs,
    args: &ExportArgs,
    mut shutdown: Shutdown,
) -> anyhow::Result<ExportManifest> {
    let folder = PartialFolder::create(&args.parquet)?;
    let mut readers = JoinSet::new();
    let written = tokio::select! {
        written = write_tables(database, args.generation, folder.path(), &mut readers) => written,
        () = shutdown.wait() => Err(anyhow!("interrupted; the incomplete export was removed")),
    };
    // Close the reader connections before the folder is renamed or removed.
    readers.shutdown().await;
    let manifest = written?;
    manifest.write(folder.path())?;
    folder.finish()?;
    Ok(manifest)
}

impl ExportManifest {
    /// Report of an export to `folder`.
    pub(crate) fn report(&self, folder: &Path) -> Report {
        let mut report = Report::new("");
        for TableManifest { name, rows, files, .. } in &self.tables {
            let (bytes, files): (u64, _) = (files.iter().map(|part| part.bytes).sum(), files.len());
            report.add_fact(format!("{name:<13} {rows:>12} rows {files:>5} files {bytes:>14} bytes"));
        }
        if let Some(LeftOut { sources, securities }) = &self.left_out {
            let (securities, sources) = (counted(*securities, "security"), sources.join(", "));
            report.add_fact(format!(
                "left out: {securities} with rows of {sources}, whose licence forbids redistribution"
            ));
        }
        let (folder, version) = (folder.display(), &self.data_version);
        report.add_fact(format!("{folder} as {version}, method {}", self.method_version));
        report
    }
}

async fn write_tables(
    database: &DatabaseArgs,
    generation: Option<GenerationId>,
    folder: &Path,
    reading: &mut JoinSet<anyhow::Result<Vec<ExportedFile>>>,
) -> anyhow::Result<ExportManifest> {
    let client = db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await?;
    client.batch_execute(BEGIN).await?;
    let id = match generation {
        Some(id) => id,
        None => client.query_one(ACTIVE, &[]).await?.try_get("generation")?,
    };
    let (mut manifest, years) = load_manifest(&client, id).await?;
    let (mut left_out, mut sources) = (HashSet::new(), BTreeSet::new());
    for row in client.query(LEFT_OUT, &[&id]).await? {
        left_out.insert(row.try_get::<_, String>("symbol")?);
        sources.extend(row.try_get::<_, Vec<String>>("sources")?);
    }
    if !left_out.is_empty() {
        manifest.left_out =
            Some(LeftOut { sources: sources.into_iter().collect(), securities: left_out.len() });
    }
    let left_out = Arc::new(left_out);
    let snapshot: String = client.query_one(SNAPSHOT, &[]).await?.try_get(0)?;
    let progress = Arc::new(Mutex::new(ProgressReport::new("written", "years of prices", years)));
    let readers = available_parallelism().map_or(1, |cores| i32::try_from(cores.get()).unwrap_or(1));
    for reader in 0..readers {
        let (database, snapshot, progress) = (database.clone(), snapshot.clone(), Arc::clone(&progress));
        let (folder, left_out) = (folder.to_owned(), Arc::clone(&left_out));
        reading.spawn(async move {
            let client = connect_reader(&database, id, &snapshot).await?;
            let wrote = || progress.lock().unwrap_or_else(PoisonError::into_inner).add(1);
            rows::write_prices(&client, (reader, readers), &folder, &left_out, wrote).await
        });
    }
    client.execute(SET_SEARCH_PATH, &[&analyst_schema(id)]).await?;
    for table in rows::TABLES {
        manifest.tables.push(rows::write_table(&client, table, folder, &left_out).await?);
    }
    let mut files: Vec<ExportedFile> = Vec::new();
    while let Some(read) = reading.join_next().await {
        files.extend(read.context("cannot finish a reader task")??);
    }
    if let Some(progress) = Arc::into_inner(progress) {
        progress.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    }
    manifest.tables.push(TableManifest::new("prices", Some("year of date"), &rows::price_columns(), files));
    Ok(manifest)
}

/// Builds the manifest from the database, still without its list of tables. Also returns the number of price rows, for
/// the progress report. Each price row contains one packed year of a security's bars.
async fn load_manifest(client: &Client, id: GenerationId) -> anyhow::Result<(ExportManifest, u64)> {
    if client.query_opt("select from generations where id = $1", &[&id]).await?.is_none() {
        bail!("cannot export generation {id}: it does not exist; see projector list");
    }
    client.execute(SET_SEARCH_PATH, &[&format!("{}, control", generation_schema(id))]).await?;
    let row = client.query_one(GENERATION, &[]).await?;
    if row.try_get::<_, &str>("state")? == "building" {
        bail!("cannot export generation {id}: it is still being built; finish it with projector rebuild");
    }
    let (sequence, years): (Sequence, i64) = (row.try_get("sequence")?, row.try_get("years")?);
    let JsonColumn(rules) = row.try_get("rules")?;
    let manifest = ExportManifest {
        format: 1,
        data_version: format!("g{id}.{sequence}"),
        generation: id,
        sequence,
        as_of: row.try_get("as_of")?,
        method_version: row.try_get("method_version")?,
        rules,
        note: row.try_get("note")?,
        left_out: None,
        tables: Vec::new(),
    };
    Ok((manifest, years.unsigned_abs()))
}

/// Opens another connection to the same snapshot, for reading packed prices.
async fn connect_reader(database: &DatabaseArgs, id: GenerationId, snapshot: &str) -> anyhow::Result<Client> {
    let client = db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await?;
    // `set transaction snapshot` accepts no parameters, so the statement contains the name of the snapshot.
    client.batch_execute(&format!("{BEGIN}; set transaction snapshot '{snapshot}'")).await?;
    client.execute(SET_SEARCH_PATH, &[&generation_schema(id)]).await?;
    Ok(client)
}
