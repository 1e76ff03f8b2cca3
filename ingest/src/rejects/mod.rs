//! `ingest rejects`: lists the rejected rows and exports them for correction.

use std::path::PathBuf;

use clap::Args;
use event_log::stream::StreamSettings;
use telemetry::outln;

use crate::log::reader::{Log, LogError};

mod export;
mod open;

pub use export::ExportError;
use export::{Refused, export};
use open::id_of;
pub(crate) use open::{IdSearch, OpenRejects};

/// Lists the rows that could not be used and that nobody mended, and writes them as a feed to mend.
///
///   ingest rejects --source eod --export mend.ndjson
///   (edit mend.ndjson; leave reject_id where it is, take out rows that are not worth mending)
///   ingest load mend.ndjson --source eod
///
/// A row is closed when a row that bears its reject_id is loaded, in whatever format, and open again when that load is
/// taken back. The rows of a run that was taken back are closed.
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub struct RejectsArgs {
    /// Only those of this run
    #[arg(long)]
    pub run: Option<String>,
    /// Only those of this feed
    #[arg(long)]
    pub source: Option<String>,
    /// Only those with this reason code
    #[arg(long)]
    pub reason: Option<String>,
    /// Only those that nobody mended; this is what is listed without being asked for
    #[arg(long, conflicts_with = "all")]
    pub open: bool,
    /// Also those that were mended or taken back
    #[arg(long)]
    pub all: bool,
    /// Write them to a new file, .ndjson or .csv, as they came and with the reason
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Print each as one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Errors of listing or exporting rejects.
#[derive(Debug, thiserror::Error)]
pub enum RejectsError {
    /// The log could not be opened or read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The rows could not be written to the file.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// Prints rejects or exports them to a file.
pub async fn rejects(args: &RejectsArgs, settings: &StreamSettings) -> Result<(), RejectsError> {
    let log = Log::open(settings).await?;
    let manifests = log.manifests().await?;
    let open = OpenRejects::of(manifests.iter().map(|(_, run)| run));
    let mut rows = Vec::new();
    log.rejects(|frame, reject| {
        let id = id_of(&frame.run, reject);
        let (run, source) = (frame.run.clone(), frame.source.clone());
        let row = Refused { open: open.is_open(&run, &id), id, run, source, reject: reject.clone() };
        if args.wants(&row) {
            match &args.export {
                Some(_) => rows.push(row),
                None => print(&row, args.json),
            }
        }
    })
    .await?;
    if let Some(path) = &args.export {
        export(path, &rows)?;
        outln!(
            "{} rows are in {}: mend them, leave their reject_id, and load the file",
            rows.len(),
            path.display()
        );
    }
    Ok(())
}

impl RejectsArgs {
    fn wants(&self, row: &Refused) -> bool {
        let wanted =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        wanted(&self.run, &row.run)
            && wanted(&self.source, &row.source)
            && wanted(&self.reason, &row.reject.reason)
            && (self.all || row.open)
    }
}

fn print(row: &Refused, json: bool) {
    let Refused { id, run, source, open, reject } = row;
    if json {
        let mut value = serde_json::to_value(reject).unwrap_or_default();
        (value["run"], value["source"]) = (run.as_str().into(), source.as_str().into());
        (value["id"], value["open"]) = (id.as_str().into(), (*open).into());
        return outln!("{value}");
    }
    let closed = if *open { "" } else { ", closed" };
    outln!(
        "{}:{}: {} ({}{closed})\n    {}",
        reject.file,
        reject.line,
        reject.message,
        reject.reason,
        reject.row
    );
}
