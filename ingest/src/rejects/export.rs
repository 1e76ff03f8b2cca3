//! Export of rejects (rows that could not be loaded) to a feed file for correction. Each record has the original row,
//! its reject id and the reason.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use market::event::Reject;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::format::canonical::kind_layout::{
    EXPORT_FIELDS, FILE_FIELD, ID_FIELD, REASON_FIELD, kind_of_file_name,
};
use crate::format::find_repeated_member;
use crate::log::reader::LogError;
use crate::log::run_states::Runs;
use crate::source::csv_reader::detect_delimiter;

/// Reject in the log. `run` and `source` belong to the load that rejected the row. `open` is false if the row was
/// corrected or the run was undone.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ListedReject {
    #[serde(flatten)]
    pub reject: Reject,
    pub run: String,
    pub source: String,
    pub id: String,
    pub open: bool,
}

/// Errors of listing or exporting rejects.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum RejectsError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("cannot write {path}: {source}")]
    File { path: String, source: io::Error },
    #[error(
        "cannot infer the format of {0}: name the file .ndjson for rows of any kind, or .csv for rows of one table"
    )]
    Ending(String),
    #[error(
        "cannot write rows of {0} tables with different columns as CSV: name the file .ndjson, or select rows with --run or --reason"
    )]
    Tables(usize),
    #[error("cannot write rows without columns as CSV: name the file .ndjson")]
    NoTable,
}

/// Command that loads the corrected rows of an export: `ingest load FILE` with the source and the map of the loads that
/// rejected the rows. `None` if these loads had different options.
pub(super) fn load_command(path: &Path, rows: &[ListedReject], runs: &Runs) -> Option<String> {
    let mut commands: Vec<&[String]> = Vec::new();
    for row in rows {
        let manifest = runs.manifests().find(|manifest| manifest.run == row.run)?;
        if !commands.contains(&manifest.command.as_slice()) {
            commands.push(&manifest.command);
        }
    }
    let mut options: Vec<String> = commands.into_iter().map(reading_options).collect();
    options.sort_unstable();
    options.dedup();
    let [options] = options.as_slice() else { return None };
    Some(format!("ingest load {}{options}", quote_for_shell(&path.display().to_string())))
}

/// Options of a load that decide how rows are read, as one text. `command` is the command of a run's manifest.
fn reading_options(command: &[String]) -> String {
    const KEPT: [&str; 6] = ["--source", "--map", "--format", "--currency", "--symbol", "--symbol-from"];
    let pairs = command.windows(2).filter(|pair| KEPT.contains(&pair[0].as_str()) && pair[1] != "auto");
    let mut options: String =
        pairs.map(|pair| format!(" {} {}", pair[0], quote_for_shell(&pair[1]))).collect();
    if command.iter().any(|option| option == "--ignore-unknown") {
        options.push_str(" --ignore-unknown");
    }
    options
}

fn quote_for_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/.,_-+@%=".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Writes rejects to a new file.
pub(super) fn export_rejects(path: &Path, rows: &[ListedReject]) -> Result<(), RejectsError> {
    let name = path.display().to_string();
    let lines = match path.extension().and_then(|ending| ending.to_str()) {
        Some("ndjson" | "jsonl") => rows.iter().map(|row| json_record(row).to_string()).collect(),
        Some("csv") => csv_lines(rows)?,
        _ => return Err(RejectsError::Ending(name)),
    };
    let failed = |source| RejectsError::File { path: name.clone(), source };
    // An existing file is not overwritten, because it may contain corrections.
    let mut file = BufWriter::new(File::create_new(path).map_err(failed)?);
    lines.iter().try_for_each(|line| writeln!(file, "{line}")).map_err(failed)?;
    file.flush().map_err(failed)
}

/// CSV lines of an export: the header of the original file, and below it one line per reject. Fails if the rejects come
/// from files with different headers.
fn csv_lines(rows: &[ListedReject]) -> Result<Vec<String>, RejectsError> {
    let mut headers: Vec<&str> =
        rows.iter().map(|row| row.reject.columns.as_deref().unwrap_or_default()).collect();
    headers.sort_unstable();
    headers.dedup();
    let [header] = headers.as_slice() else { return Err(RejectsError::Tables(headers.len())) };
    if header.is_empty() {
        return Err(RejectsError::NoTable);
    }
    let sign = char::from(detect_delimiter(header.as_bytes()));
    let added = EXPORT_FIELDS.join(&sign.to_string());
    let mut lines = vec![format!("{header}{sign}{added}")];
    lines.extend(rows.iter().map(|ListedReject { reject, id, .. }| {
        let [file, reason] = [&reject.file, &reject.message].map(|text| text.replace('"', "\"\""));
        let row = reject.row.trim_end_matches(['\r', '\n']);
        format!("{row}{sign}{id}{sign}\"{file}\"{sign}\"{reason}\"")
    }));
    Ok(lines)
}

/// JSON object with the fields of the rejected row, its reject id and the reason. If the row cannot be split into
/// fields, its whole text becomes the field `row`.
fn json_record(row: &ListedReject) -> Value {
    let ListedReject { id, reject, .. } = row;
    let mut members = match (&reject.columns, serde_json::from_str::<Value>(&reject.row)) {
        // A row with a repeated member name stays text. An object would keep only the last of the repeated members.
        (None, Ok(Value::Object(members))) if find_repeated_member(&reject.row).is_none() => members,
        (Some(columns), _) => cells(columns, reject).unwrap_or_else(|| unsplit_row(reject)),
        _ => unsplit_row(reject),
    };
    members.insert(ID_FIELD.to_owned(), json!(id));
    members.insert(FILE_FIELD.to_owned(), json!(reject.file));
    members.insert(REASON_FIELD.to_owned(), json!(reject.message));
    Value::Object(members)
}

fn unsplit_row(reject: &Reject) -> Map<String, Value> {
    Map::from_iter([("row".to_owned(), json!(reject.row))])
}

/// Cells of a table row by column name, without empty cells. `None` if row and header have different numbers of cells.
fn cells(columns: &str, reject: &Reject) -> Option<Map<String, Value>> {
    let sign = detect_delimiter(columns.as_bytes());
    let [columns, row] = [columns, reject.row.as_str()].map(|text| {
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.has_headers(false).flexible(true).delimiter(sign);
        reader.from_reader(text.as_bytes()).into_records().next().and_then(Result::ok)
    });
    let (columns, row) = (columns?, row?);
    if columns.len() != row.len() {
        return None;
    }
    let kind = kind_of_file_name(&reject.file).map(|kind| ("kind".to_owned(), json!(kind)));
    let filled = columns.iter().zip(&row).filter(|(_, cell)| !cell.is_empty());
    Some(kind.into_iter().chain(filled.map(|(column, cell)| (column.to_owned(), json!(cell)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &str, columns: Option<&str>, row: &str) -> ListedReject {
        let [reason, message] = ["bad_date", "date \"x\" is no date"].map(str::to_owned);
        let (file, row, columns) = (file.to_owned(), row.to_owned(), columns.map(str::to_owned));
        let reject = Reject { file, line: 2, reason, message, row, columns };
        let [id, run, source] = ["rj-1", "r", "eod"].map(str::to_owned);
        ListedReject { id, run, source, open: true, reject }
    }

    #[test]
    fn rows_become_records_to_mend() {
        let row = refused("2024/prices.csv.gz", Some("symbol,date,close"), "KO,x,58.10");
        let expected = json!({ "kind": "price", "symbol": "KO", "date": "x", "close": "58.10",
            "reject_id": "rj-1", "reject_file": "2024/prices.csv.gz", "reject_reason": "date \"x\" is no date" });
        assert_eq!(json_record(&row), expected);
        let json = refused("feed.ndjson", None, r#"{"kind":"split","to":2}"#);
        assert_eq!(
            (&json_record(&json)["to"], &json_record(&json)["reject_id"]),
            (&json!(2), &json!("rj-1"))
        );
        let twice = r#"{"kind":"split","to":2,"to":3}"#;
        assert_eq!(json_record(&refused("feed.ndjson", None, twice))["row"], twice);
        let broken = refused("prices.csv", Some("symbol,date,close"), "KO,\"x");
        assert_eq!(json_record(&broken)["row"], "KO,\"x");
    }

    #[test]
    fn a_table_keeps_its_header() {
        let row = refused("prices.csv", Some("symbol,date,close"), "KO,x,58.10");
        let lines = csv_lines(std::slice::from_ref(&row)).unwrap();
        let expected = [
            "symbol,date,close,reject_id,reject_file,reject_reason",
            "KO,x,58.10,rj-1,\"prices.csv\",\"date \"\"x\"\" is no date\"",
        ];
        assert_eq!(lines, expected);
        let german = refused("kurse.csv", Some("Datum;Schluss"), "x;58,10");
        let lines = csv_lines(std::slice::from_ref(&german)).unwrap();
        assert_eq!(lines[0], "Datum;Schluss;reject_id;reject_file;reject_reason");
        assert_eq!(lines[1], "x;58,10;rj-1;\"kurse.csv\";\"date \"\"x\"\" is no date\"");
        assert_eq!(json_record(&german)["Schluss"], "58,10");
        let other = refused("splits.csv", Some("symbol,ex_date,from,to"), "KO,x,1,2");
        assert!(matches!(csv_lines(&[row, other]), Err(RejectsError::Tables(2))));
    }
}
