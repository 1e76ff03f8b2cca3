//! `ingest rejects`: lists the rejected rows and exports them for correction.

use std::path::PathBuf;

use clap::Args;
use event_log::record_batch::{Body, RecordBatch};
use event_log::stream::StreamSettings;
use market::event::Kind;
use serde_json::json;
use telemetry::table::{Column, ListArgs, Table};
use telemetry::{counted, outln, shorten};

use crate::log::reader::{Log, LogError};
use crate::log::run_states::Runs;

mod export;
mod open;

pub use export::RejectsError;
use export::{ListedReject, export_rejects, load_command};
use open::reject_id;
pub(crate) use open::{OpenRejects, RejectIdSearch};

/// Lists the open rejects, or exports them as a feed to correct. A reject is a row
/// that could not be loaded. It is open until it is corrected.
///
///   ingest rejects --source eod --export mend.ndjson
///   (edit mend.ndjson; keep reject_id, and delete rows that need no correction)
///   ingest load mend.ndjson --source eod
///
/// The export prints the load command. A file that was loaded with a map is
/// loaded again with the same map.
///
/// To close a reject, load the corrected row with the same reject_id, in a file
/// of any format. An undo of the correcting load opens the reject again. An
/// undo of the load that rejected the row closes the reject. An export contains
/// all selected rejects; --limit does not apply to it. With --json, each line
/// is one reject.
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub struct RejectsArgs {
    /// Run id, or its beginning; default: all runs
    #[arg(long)]
    pub run: Option<String>,
    /// Name of the feed; default: all feeds
    #[arg(long)]
    pub source: Option<String>,
    /// Reason code, for example bad_date; default: all reasons
    #[arg(long)]
    pub reason: Option<String>,
    /// Open rejects only; this is the default
    #[arg(long, conflicts_with = "all")]
    pub open: bool,
    /// Also list closed rejects: corrected rejects, and rejects of undone runs
    #[arg(long)]
    pub all: bool,
    /// Write the original rows with reject_id and reason to this new .ndjson or .csv file instead of printing them
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Limit and format of the list.
    #[command(flatten)]
    pub output: ListArgs,
}

/// Maximum length of a row in the printed table, in characters. Exports and JSON output contain complete rows.
const PRINTED_ROW: usize = 500;

/// Prints rejects or exports them to a file.
pub async fn list_rejects(args: &RejectsArgs, settings: &StreamSettings) -> Result<(), RejectsError> {
    let (mut rows, mut total, mut rejected) = (Vec::new(), 0, 0);
    let (limit, json) = (args.output.max_rows(), args.output.json);
    let reason = if args.all { "reason, state" } else { "reason" };
    let columns = ["row", "source", reason, "message"].map(Column::Text);
    let mut table = Table::new(["reject", "rejects"], &columns, limit);
    let (mut absence, mut runs) = (None, Runs::default());
    match Log::open_existing(settings).await {
        // A lost log must not look like an empty log.
        Err(error) if error.is_absence() => absence = Some(format!("no rejects: {error}")),
        log => {
            let log = log?;
            runs = Runs::read(&log).await?;
            let open = OpenRejects::from_runs(&runs);
            let wanted_run = runs.find_id(args.run.as_deref()).map_err(LogError::from)?;
            let list = |RecordBatch { run, source, body, .. }: RecordBatch| {
                let Body::Rejects(rejects) = body else { return };
                for reject in rejects {
                    rejected += 1;
                    let id = reject_id(&run, &reject);
                    let (open, run, source) = (open.is_open(&run, &id), run.clone(), source.clone());
                    let row = ListedReject { reject, run, source, id, open };
                    if wanted_run.is_none_or(|wanted| wanted == row.run) && args.matches(&row) {
                        total += 1;
                        match (&args.export, json) {
                            (Some(_), _) => rows.push(row),
                            (None, true) if total <= limit => outln!("{}", json!(row)),
                            (None, true) => {}
                            (None, false) => add_reject(&mut table, &row),
                        }
                    }
                }
            };
            log.each_batch(Kind::Reject, list).await?;
        }
    }
    if let Some(path) = &args.export {
        export_rejects(path, &rows)?;
        let written = format!("wrote {} to {}", counted(rows.len(), "row"), path.display());
        match load_command(path, &rows, &runs) {
            _ if rows.is_empty() => outln!("{written}: no reject matches"),
            Some(command) => {
                outln!("{written}: correct the values, keep each reject_id, then run:\n  {command}")
            }
            None => outln!(
                "{written}: they are of loads with different options; export the rows of each run with --run"
            ),
        }
        return Ok(());
    }
    if json && total > limit {
        tracing::warn!(total, printed = limit, "not all rejects printed: raise --limit");
    }
    if !json {
        let empty = match rejected {
            0 => {
                "no rejects: every row of the loaded files was accepted; rejected rows of a refused file are in its message"
            }
            _ => {
                "no rejects match: the others are closed, or of another run, source or reason; --all lists closed ones"
            }
        };
        table.print(absence.as_deref().unwrap_or(empty));
    }
    Ok(())
}

impl RejectsArgs {
    fn matches(&self, row: &ListedReject) -> bool {
        let wanted =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        wanted(&self.source, &row.source)
            && wanted(&self.reason, &row.reject.reason)
            && (self.all || row.open)
    }
}

fn add_reject(table: &mut Table, row: &ListedReject) {
    let ListedReject { source, open, reject, .. } = row;
    let closed = if *open { "" } else { ", closed" };
    let cells = [
        format!("{}:{}", reject.file, reject.line),
        source.clone(),
        format!("{}{closed}", reject.reason),
        reject.message.clone(),
    ];
    table.add_detailed_row(cells, [shorten(reject.row.trim_end(), PRINTED_ROW)]);
}
