//! Proposed maps for real files of vendors. Each map must be incomplete, or load exactly the rows that an independent
//! reading of the file has.
//!
//! The files are in the folder `shared/samples` next to the repository. Without this folder, the test is skipped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta};
use market::symbol::Symbol;
use serde_json::Value;
use skipped::Requirement;

use crate::format::tests::read_helper::{bodies, options, read_with};
use crate::format::{ColumnMap, ReaderOptions};
use crate::infer::propose_map;
use crate::source::feed_files::{self, FeedFile};
use crate::source::unpack;

/// Names of the columns in the independent reading.
const DATES: [&str; 4] = ["date", "datetime", "day", "from"];
const CLOSES: [&str; 3] = ["close", "aapl.close", "last"];
const SYMBOLS: [&str; 3] = ["symbol", "ticker", "stock"];
/// Symbol of the files without symbols in their rows.
const FILE_SYMBOL: &str = "FILE";

/// Row as text: kind, symbol, date and value.
fn row(kind: &str, symbol: &str, date: NaiveDate, value: &str) -> String {
    format!(
        "{kind} {symbol} {date} {}",
        market::decimal::parse_figure(value)
            .map_or_else(|_| value.to_owned(), |value| value.value.normalize().to_string())
    )
}

fn date(text: &str) -> Option<NaiveDate> {
    let day = text.get(..10).and_then(|day| day.parse().ok());
    day.or_else(|| NaiveDate::parse_from_str(text, "%d-%b-%y").ok())
}

/// Ratio of new to old shares as a number: 4 for `4:1`.
fn ratio(text: &str) -> String {
    let (to, from) = text.split_once(':').unwrap_or((text, "1"));
    let [to, from] = [to, from].map(|side| market::decimal::parse_figure(side).map(|side| side.value));
    to.ok().zip(from.ok()).map_or_else(|| text.to_owned(), |(to, from)| (to / from).round_dp(8).to_string())
}

/// Independent reading of a table.
fn rows_of_table(text: &str, kind: &str) -> Vec<String> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let cells = |line: &str| {
        line.split(',').map(|cell| cell.trim().trim_matches('"').to_owned()).collect::<Vec<String>>()
    };
    let header: Vec<String> =
        cells(lines.next().unwrap_or_default()).iter().map(|name| name.to_lowercase()).collect();
    let position = |names: &[&str]| header.iter().position(|name| names.contains(&name.as_str()));
    let value = match kind {
        "price" => position(&CLOSES),
        "dividend" => position(&["dividends"]),
        _ => position(&["stock splits"]),
    };
    let (Some(value), Some(day)) = (value, position(&DATES)) else { return Vec::new() };
    let symbol = position(&SYMBOLS);
    let file_symbol =
        header[value].split_once('.').map_or(FILE_SYMBOL.to_owned(), |(symbol, _)| symbol.to_uppercase());
    let read = |line: &str| {
        let cells = cells(line);
        let (value, day) = (cells.get(value)?, date(cells.get(day)?)?);
        let is_zero = value.chars().all(|c| "0.".contains(c));
        let symbol =
            symbol.map_or(Some(file_symbol.as_str()), |symbol| cells.get(symbol).map(String::as_str))?;
        let value = &if kind == "split" { ratio(value) } else { value.clone() };
        (!is_zero && value.contains(|c: char| c.is_ascii_digit())).then(|| row(kind, symbol, day, value))
    };
    lines.filter_map(read).collect()
}

/// Independent reading of a JSON document: every object with members of a row, at any depth.
fn rows_of_document(value: &Value, outer: &str, found: &mut Vec<String>) {
    let text = |value: &Value, names: &[&str]| {
        let member = names.iter().find_map(|name| value.get(name))?;
        Some(member.as_str().map_or_else(|| member.to_string(), str::to_owned))
    };
    match value {
        Value::Array(items) => items.iter().for_each(|item| rows_of_document(item, outer, found)),
        Value::Object(members) => {
            let symbol = text(value, &["ticker", "symbol"]).unwrap_or_else(|| outer.to_owned());
            let day = text(value, &["ex_dividend_date", "execution_date", "from"]).and_then(|day| date(&day));
            // The times are midnights in New York: four or five hours after midnight in UTC.
            let time = text(value, &["t"]).and_then(|time| time.parse::<i64>().ok());
            let bar = time.and_then(|time| {
                Some(DateTime::UNIX_EPOCH.checked_add_signed(TimeDelta::milliseconds(time))?.date_naive())
            });
            if let (Some(day), Some(close)) = (day.or(bar), text(value, &["c", "close"])) {
                found.push(row("price", &symbol, day, &close));
            }
            if let (Some(day), Some(amount)) = (day, text(value, &["cash_amount"])) {
                found.push(row("dividend", &symbol, day, &amount));
            }
            let sides =
                (text(value, &["split_from", "denominator"]), text(value, &["split_to", "numerator"]));
            let day = day.or_else(|| {
                let seconds = text(value, &["date"])?.parse::<i64>().ok()?;
                Some(DateTime::UNIX_EPOCH.checked_add_signed(TimeDelta::seconds(seconds))?.date_naive())
            });
            if let (Some(day), (Some(from), Some(to))) = (day, sides) {
                found.push(row("split", &symbol, day, &ratio(&format!("{to}:{from}"))));
            }
            if let (Some(factor), Some(seconds)) =
                (text(value, &["lastSplitFactor"]), text(value, &["lastSplitDate"]))
            {
                let day = seconds
                    .parse()
                    .ok()
                    .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
                    .map(|time| time.date_naive());
                found.extend(day.map(|day| row("split", &symbol, day, &ratio(&factor))));
            }
            members.values().for_each(|member| rows_of_document(member, &symbol, found));
        }
        _ => {}
    }
}

/// Rows that a map loads, in the form of [`row`], and the number of rejects.
fn loaded(name: &str, text: &str, map: ColumnMap) -> Option<(Vec<String>, usize)> {
    let symbol = if map.has_symbol_column() { None } else { Symbol::parse(FILE_SYMBOL).ok() };
    let today = NaiveDate::from_ymd_opt(2026, 12, 31).unwrap();
    let options = ReaderOptions { map: Some(Arc::new(map)), symbol, today, ..options() };
    bodies(name, text, &options).ok()?;
    let (mut rows, mut rejects) = (Vec::new(), 0);
    for line in read_with(name, text, &options) {
        let words: Vec<&str> = line.split(' ').collect();
        let value = match words[0] {
            "price" => words.iter().find_map(|word| word.strip_prefix("c=")).unwrap(),
            "reject" => {
                rejects += 1;
                continue;
            }
            _ => words[3],
        };
        let value = match value.split_once(':') {
            Some((from, to)) => ratio(&format!("{to}:{from}")),
            None => value.to_owned(),
        };
        rows.push(row(words[0], words[1], words[2].parse().unwrap(), &value));
    }
    Some((rows, rejects))
}

fn text_of(file: &FeedFile) -> String {
    let mut text = String::new();
    unpack::read_text(file, |reader| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(reader, &mut bytes)?;
        text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(())
    })
    .unwrap();
    text
}

#[test]
fn maps_of_the_samples_load_what_the_files_say() {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    if !folder.is_dir() {
        return skipped::record(Requirement::SampleData, "");
    }
    let found = feed_files::find_feed_files(&[folder], None, None);
    let (mut complete, mut wrong) = (BTreeSet::new(), Vec::new());
    for file in &found.files {
        let Ok(proposal) = propose_map(file) else { continue };
        let Ok(map) = ColumnMap::parse(&proposal) else { continue };
        let text = text_of(file);
        let Some((mut rows, rejects)) = loaded(&file.label, &text, map) else { continue };
        let kind = proposal.lines().find_map(|line| line.strip_prefix("kind = ")).unwrap_or_default();
        let mut expected = match serde_json::from_str::<Value>(&text) {
            Ok(document) => {
                let mut expected = Vec::new();
                rows_of_document(&document, FILE_SYMBOL, &mut expected);
                expected
            }
            Err(_) => rows_of_table(&text, kind.trim_matches('"')),
        };
        rows.sort();
        expected.sort();
        let known: BTreeSet<&String> = expected.iter().collect();
        let is_read = rows.iter().all(|row| known.contains(row));
        // The loader rejects rows with other faults, which the independent reading does not look for.
        if !is_read || rows.len() > expected.len() || expected.len() > rows.len() + rejects {
            let first = rows.iter().find(|row| !known.contains(row));
            wrong.push(format!(
                "{}: {} and {rejects} of {}, {first:?}, {:?}",
                file.label,
                rows.len(),
                expected.len(),
                expected.first()
            ));
        }
        complete.insert(file.label.clone());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(complete.len() > 120, "{} maps are complete", complete.len());
}
