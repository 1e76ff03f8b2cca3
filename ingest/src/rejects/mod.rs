//! `ingest rejects`: lists the rejected rows and exports them for correction.

use std::path::PathBuf;

use clap::Args;
use event_log::stream::StreamSettings;
use telemetry::outln;

use crate::log::reader::{Log, LogError};
use crate::source::file_label::escape_name;

mod export;
mod open;

pub use export::RejectExportError;
use export::{ListedReject, export_rejects};
use open::reject_id;
pub(crate) use open::{OpenRejects, RejectIdSearch};

/// Lists the open rejects: rows that could not be loaded and are not corrected yet. Exports them as a feed to correct.
///
///   ingest rejects --source eod --export mend.ndjson
///   (edit mend.ndjson; keep reject_id, and delete rows that need no correction)
///   ingest load mend.ndjson --source eod
///
/// Loading a row with the reject_id of a reject closes the reject, in any format. If this load is undone, the reject is
/// open again. The rejects of an undone run are closed.
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub struct RejectsArgs {
    /// Run id; default: all runs
    #[arg(long)]
    pub run: Option<String>,
    /// Name of the feed; default: all feeds
    #[arg(long)]
    pub source: Option<String>,
    /// Reason code; default: all reasons
    #[arg(long)]
    pub reason: Option<String>,
    /// Open rejects only; this is the default
    #[arg(long, conflicts_with = "all")]
    pub open: bool,
    /// Closed rejects too: corrected rejects, and rejects of undone runs
    #[arg(long)]
    pub all: bool,
    /// New file, .ndjson or .csv, for the original rows with their reject_id and reason; the rows are then not printed
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Maximum number of rejects to print; an export contains all of them
    #[arg(long, default_value_t = 1000, value_name = "ROWS")]
    pub limit: u64,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Maximum length of a printed row, in characters. An export and JSON contain the whole row.
const PRINTED_ROW: usize = 500;

/// Errors of listing or exporting rejects.
#[derive(Debug, thiserror::Error)]
pub enum RejectsError {
    /// The log could not be opened or read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The rows could not be written to the file.
    #[error(transparent)]
    Export(#[from] RejectExportError),
}

/// Prints rejects or exports them to a file.
pub async fn list_rejects(args: &RejectsArgs, settings: &StreamSettings) -> Result<(), RejectsError> {
    let log = Log::open(settings).await?;
    let manifests = log.manifests().await?;
    let open = OpenRejects::from_manifests(manifests.iter().map(|(_, run)| run));
    let (mut rows, mut total) = (Vec::new(), 0);
    log.each_reject(|frame, reject| {
        let id = reject_id(&frame.run, reject);
        let (run, source) = (frame.run.clone(), frame.source.clone());
        let row = ListedReject { open: open.is_open(&run, &id), id, run, source, reject: reject.clone() };
        if args.matches(&row) {
            total += 1;
            match &args.export {
                Some(_) => rows.push(row),
                None if total <= args.limit => print_reject(&row, args.json),
                None => {}
            }
        }
    })
    .await?;
    if let Some(path) = &args.export {
        export_rejects(path, &rows)?;
        outln!(
            "{} rows are in {}: correct them, keep their reject_id, and load the file",
            rows.len(),
            path.display()
        );
        return Ok(());
    }
    let printed = total.min(args.limit);
    if printed < total {
        tracing::warn!(total, printed, "not all rejects printed: raise --limit, or write all with --export");
    }
    if !args.json {
        outln!("{printed} of {total} rejects printed");
    }
    Ok(())
}

impl RejectsArgs {
    fn matches(&self, row: &ListedReject) -> bool {
        let wanted =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        wanted(&self.run, &row.run)
            && wanted(&self.source, &row.source)
            && wanted(&self.reason, &row.reject.reason)
            && (self.all || row.open)
    }
}

fn print_reject(row: &ListedReject, json: bool) {
    let ListedReject { id, run, source, open, reject } = row;
    if json {
        let mut value = serde_json::to_value(reject).unwrap_or_default();
        (value["run"], value["source"]) = (run.as_str().into(), source.as_str().into());
        (value["id"], value["open"]) = (id.as_str().into(), (*open).into());
        return outln!("{value}");
    }
    let closed = if *open { "" } else { ", closed" };
    outln!(
        "{}:{}: {} ({}{closed})\n    {}",
        escape_name(&reject.file),
        reject.line,
        escape_name(&reject.message),
        reject.reason,
        escape_name(&shorten_row(&reject.row))
    );
}

fn shorten_row(row: &str) -> String {
    let row = row.trim_end();
    let mut shown: String = row.chars().take(PRINTED_ROW).collect();
    if shown.len() < row.len() {
        shown.push('…');
    }
    shown
}
