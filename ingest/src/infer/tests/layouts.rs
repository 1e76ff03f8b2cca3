//! Proposed maps for files in the layouts of brokers, vendors and exchanges, with the rows that each map loads.
//!
//! `layouts.txt` has the files. For each file it has the loaded rows, or the questions that the proposal leaves open, or
//! the reason of a refusal. The rows of the files are invented.

use std::fmt::Write;
use std::sync::Arc;

use event_log::record_batch::Body;
use serde_json::Value;

use super::propose;
use crate::format::ColumnMap;
use crate::format::tests::read_helper::{bodies, options, read_with};

/// Proposal for a file: the rows that the map loads, or the questions that it leaves open.
pub(super) fn outcome(name: &str, text: &str) -> String {
    let proposal = match propose(name, text.as_bytes()) {
        Ok(proposal) => proposal,
        Err(reason) => return format!("refused: {reason}\n"),
    };
    let mut outcome = String::new();
    let mut lines = proposal.lines().peekable();
    while let Some(line) = lines.next() {
        let is_question = line.contains(" is open: ") || line.ends_with("Choose:");
        let shown = [
            "# required, ",
            "choose one",
            "# kind = ",
            "is no amount: ",
            "[symbols]",
            "file_name = ",
            "several symbols: ",
        ];
        let is_shown = shown.iter().any(|part| line.contains(part))
            && !line.starts_with("# [symbols]")
            && !line.starts_with("# file_name");
        if !is_question && !is_shown {
            continue;
        }
        writeln!(outcome, "{line}").unwrap();
        while let Some(reading) =
            lines.next_if(|next| is_question && next.starts_with("# ") && next.contains(" = "))
        {
            writeln!(outcome, "{reading}").unwrap();
        }
    }
    let Ok(map) = ColumnMap::parse(&proposal) else {
        let columns =
            proposal.split("\n[columns]\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
        let proposed = columns.chain(proposal.lines().filter(|line| line.starts_with("only = ")));
        let proposed = proposed.filter(|line| !line.starts_with('#'));
        proposed.for_each(|line| writeln!(outcome, "{line}").unwrap());
        return outcome;
    };
    let options = crate::format::ReaderOptions {
        map: Some(Arc::new(map)),
        today: "2026-12-31".parse().unwrap(),
        ..options()
    };
    match bodies(name, text, &options) {
        Err(reason) => {
            writeln!(outcome, "incomplete: the file {}", reason.lines().next().unwrap_or_default()).unwrap()
        }
        Ok(_) => read_rows(name, text, &options).iter().for_each(|row| writeln!(outcome, "{row}").unwrap()),
    }
    outcome
}

/// Rows as text. Dividends have all their dates.
fn read_rows(name: &str, text: &str, options: &crate::format::ReaderOptions) -> Vec<String> {
    let dates = |row: &Value| {
        let dates = ["record_date", "payment_date", "declaration_date"];
        let found = dates.iter().filter_map(|name| Some(format!(" {name} {}", row[*name].as_str()?)));
        found.collect::<String>()
    };
    let dividends =
        bodies(name, text, options).unwrap().into_iter().filter(|body| matches!(body, Body::Dividends(_)));
    let dividends = dividends.map(|body| body.rows_json().unwrap());
    let mut dates: Vec<String> = dividends
        .flat_map(|rows| rows.as_array().unwrap().iter().map(|row| dates(&row["record"])).collect::<Vec<_>>())
        .collect();
    dates.reverse();
    let rows = read_with(name, text, options).into_iter();
    rows.map(|row| if row.starts_with("dividend ") { row + &dates.pop().unwrap_or_default() } else { row })
        .collect()
}

#[test]
fn layouts_of_brokers_vendors_and_exchanges_are_read_or_left_open() {
    let (mut found, mut files) = (String::new(), 0);
    let expected = include_str!("layouts.txt");
    for part in expected.split("\n=== ").skip(1) {
        let (name, rest) = part.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n--- \n").unwrap();
        write!(found, "\n=== {name}\n{text}\n--- \n{}", outcome(name, &format!("{text}\n"))).unwrap();
        files += 1;
    }
    let written = std::env::temp_dir().join("layouts.txt");
    std::fs::write(&written, &found).unwrap();
    let is_different = |(one, other): &(&str, &str)| one != other;
    let body = &expected[expected.find("\n=== ").unwrap()..];
    let first = found.lines().zip(body.lines()).find(is_different);
    assert_eq!((first, found.len(), files > 50), (None, body.len(), true), "see {}", written.display());
}
