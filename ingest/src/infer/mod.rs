//! `ingest map`: proposes a column map for a file. The output also shows the first rows as read with this map.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use chrono::{DateTime, Utc};
use clap::Args;
use event_log::record_batch::Body;
use market::symbol::Symbol;
use serde_json::Value;
use telemetry::report::Report;
use telemetry::table::{Column, Table};
use telemetry::{counted, out};

use crate::batch::load_stats::LoadStats;
use crate::batch::reviewed_rows::ReviewedRows;
use crate::batch::row_accumulator::{RowAccumulator, RowChunk};
use crate::format::{ColumnMap, FeedReadError, FileFormat, FileHead, ReaderOptions, SHIPPED};
use crate::normalize::abbreviate;
use crate::source::feed_files::{self, FeedFile};
use crate::source::unpack;

mod account_rows;
mod cell_formats;
mod column_choice;
mod json_profile;
mod map_notation;
mod map_writer;
mod proposal;
mod table_profile;

use proposal::Proposal;
use table_profile::{SAMPLE_BYTES, TableProfile};

/// Maximum size of a JSON document, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Number of rows printed below the proposed map.
const SHOWN_ROWS: usize = 3;

/// Proposes a column map for a file in an unknown format. `ingest load --map` loads the file with this map.
///
/// A map is a TOML file with the meaning of the columns and the notation of dates and numbers. It also says if the
/// symbol is in a column or in the file name. Review the proposed map, correct it, and try it: ingest map FILE >
/// my.toml, then ingest load FILE --map my.toml --source NAME --dry-run
///
/// Without FILE, the command lists the shipped maps. If FILE is the name of a shipped map, the command prints that map.
#[derive(Debug, Clone, Args)]
pub struct MapArgs {
    /// File to examine (also compressed, or a zip archive), or name of a shipped map
    pub file: Option<PathBuf>,
}

/// Error of a map proposal: the file cannot be read, or contains no recognizable table.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct MapProposalError {
    file: String,
    reason: String,
}

/// Prints a proposed map for the file, or the shipped map with this name. Without an argument, lists the shipped maps.
///
/// # Errors
/// The file cannot be read, or contains no recognizable table.
pub fn print_map(args: &MapArgs) -> Result<(), MapProposalError> {
    let Some(path) = &args.file else {
        let mut table =
            Table::new(["map", "maps"], &[Column::Text("map"), Column::Text("files")], usize::MAX);
        for (name, text) in SHIPPED {
            let files = text.lines().next().unwrap_or_default().trim_start_matches("# ");
            table.add_row([name.to_owned(), files.to_owned()]);
        }
        table.add_note("ingest map NAME prints one");
        table.print("no maps ship with this program");
        return Ok(());
    };
    if let Some((_, text)) = SHIPPED.iter().find(|(name, _)| path.as_os_str() == *name) {
        out!("{text}");
        return Ok(());
    }
    let refused = |reason| MapProposalError { file: path.display().to_string(), reason };
    let found = feed_files::find_feed_files(std::slice::from_ref(path), None, None);
    let unreadable = || found.refused.first().map_or("contains no table file", |(_, reason)| reason);
    let file = found.files.first().ok_or_else(|| refused(unreadable().to_owned()))?;
    let text = propose_map(file).map_err(refused)?;
    out!("{text}");
    Ok(())
}

/// Reads at most `limit` bytes from the beginning of a file.
fn read_beginning(file: &FeedFile, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    unpack::read_text(file, |reader| reader.take(limit).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    Ok(bytes)
}

/// Proposes a map for a file. The result is the map, followed by the first rows that were read with it.
fn propose_map(file: &FeedFile) -> Result<String, String> {
    let mut bytes = read_beginning(file, SAMPLE_BYTES)?;
    let (text, windows_1252) = table_profile::decode(&bytes);
    let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    if is_json {
        // Unlike a text table, the document is read as a whole.
        bytes = read_beginning(file, MAX_DOCUMENT_BYTES)?;
    } else if bytes.len() as u64 == SAMPLE_BYTES {
        // The last line is cut off.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1));
    }
    let text = if is_json { String::from_utf8_lossy(&bytes) } else { table_profile::decode(&bytes).0 };
    let profile =
        if is_json { json_profile::infer(&text)? } else { TableProfile::infer(&text, windows_1252)? };
    let proposal = Proposal::infer(&profile, &file.label)?;
    let map = map_writer::write_toml(&profile, &proposal, &file.label);
    let placeholder = Symbol::parse("SYMBOL").ok();
    let shown = match first_rows(file, &bytes, &map, None) {
        Ok(rows) => format!("\n# The first rows, as this map reads them:\n{rows}"),
        Err(reason) => match first_rows(file, &bytes, &map, placeholder.clone()) {
            Ok(rows) => {
                format!("\n# The symbol is unknown: the file {reason}\n# With --symbol SYMBOL:\n{rows}")
            }
            Err(_) => format!("\n# Incomplete: {reason}\n"),
        },
    };
    let mut proposed = map + &shown;
    // Shipped maps for files without a header are not tried, because they would fit every table of numbers.
    for (name, map) in SHIPPED.iter().filter(|(_, map)| !map.contains("header = 0")) {
        let rows = first_rows(file, &bytes, map, placeholder.clone());
        if rows.is_ok_and(|rows| !rows.is_empty() && !rows.contains("rejected")) {
            proposed += &format!("\n# The shipped map {name} also reads this file: --map {name}\n");
        }
    }
    if let Some(reason) = refusal(file, text.as_bytes()) {
        proposed += &format!("\n# Without a map, the file cannot be read: it {}\n", shown_line(&reason));
    }
    Ok(proposed)
}

/// Reason why a file cannot be read without a map; `None` if the file needs no map. Some of these reasons also prevent
/// reading with a map.
fn refusal(file: &FeedFile, bytes: &[u8]) -> Option<String> {
    let head = FileHead::read(file, &mut &*bytes).ok()?;
    FileFormat::detect(file, &head, &reader_options(None, Symbol::parse("SYMBOL").ok())).err()
}

/// Reader options with this map, this symbol and the current date. All other options have their defaults.
fn reader_options(map: Option<Arc<ColumnMap>>, symbol: Option<Symbol>) -> ReaderOptions {
    ReaderOptions { map, symbol, today: Utc::now().date_naive(), ..ReaderOptions::default() }
}

/// Reads a file according to a column map. Returns comment lines: the first rows, the first rejects, and a review by
/// the domain rules.
fn first_rows(file: &FeedFile, bytes: &[u8], map: &str, symbol: Option<Symbol>) -> Result<String, String> {
    let map = ColumnMap::parse(map).map_err(|error| error.to_string())?;
    let options = reader_options(Some(Arc::new(map)), symbol);
    let head = FileHead::read(file, &mut &*bytes).map_err(|error| error.to_string())?;
    let format = FileFormat::detect(file, &head, &options)?;
    let (read, stats, pieces) = collect_rows(&format, &file.label, bytes, &options);
    read.map_err(|error| error.to_string())?;
    let mut lines = String::new();
    let mut reviewed = ReviewedRows::default();
    for piece in pieces {
        let bodies = match piece {
            RowChunk::Rows(body, _) => vec![body],
            RowChunk::Prices(batch, symbols) => batch
                .cut_into_record_batches(&symbols)
                .batches
                .into_iter()
                .map(|batch| Body::Prices(batch.series))
                .collect(),
        };
        for body in bodies.into_iter().filter(|body| !matches!(body, Body::Rejects(_))) {
            let shown = body.rows_json().map_err(|error| error.to_string())?;
            for row in shown.as_array().into_iter().flatten().take(SHOWN_ROWS) {
                lines.push_str(&format!("# {}\n", without_version(row.get("record").unwrap_or(row))));
            }
            reviewed.add_body(body);
        }
    }
    if stats.rejected_count() > 0 {
        lines.push_str(&format!(
            "# {} of {} would be rejected:\n",
            stats.rejected_count(),
            counted(stats.records, "row")
        ));
        for reject in stats.examples.iter().take(SHOWN_ROWS) {
            lines.push_str(&format!("# line {}: {}\n", reject.line, shown_line(&reject.message)));
        }
    }
    let mut review = Report::new("");
    reviewed.review("file", options.today).add_to(&mut review);
    review.to_string().lines().for_each(|line| lines.push_str(&format!("# {line}\n")));
    Ok(lines)
}

/// Reads a file in memory. Returns the result, the statistics and all chunks of rows.
pub(crate) fn collect_rows(
    format: &FileFormat,
    label: &str,
    mut bytes: &[u8],
    options: &ReaderOptions,
) -> (Result<(), FeedReadError>, LoadStats, Vec<RowChunk>) {
    let (sender, pieces) = sync_channel(64);
    let mut rows = RowAccumulator::new(label, DateTime::UNIX_EPOCH, options.today, sender, sync_channel(0).1);
    // A second thread receives the chunks while this thread reads the file. Otherwise `rows`, which sends the chunks,
    // would block when the channel is full.
    std::thread::scope(|scope| {
        let collector = scope.spawn(move || pieces.into_iter().collect::<Vec<RowChunk>>());
        let read = format.read(&mut bytes, options, &mut rows);
        let (stats, _) = rows.finish();
        (read, stats, collector.join().unwrap_or_default())
    })
}

/// Removes the fields `action`, `observed_at` and `revision` from the JSON of a row. They need not be printed, because
/// they are equal in all rows of a first load.
fn without_version(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "action" | "observed_at" | "revision"));
    }
    row
}

/// First line of a message. The caller writes it as a comment.
fn shown_line(text: &str) -> String {
    text.lines().next().map(str::to_owned).unwrap_or_else(|| abbreviate(text.as_bytes()))
}

#[cfg(test)]
mod tests;
