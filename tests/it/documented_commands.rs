//! Tests that run every command line of README.md and docs/ against a fresh stack.
//!
//! A command line is in a fenced `sh` or `console` block, or in a table column "command" or "script". The exit code
//! must be 0 or listed in [`OTHER_CODES`]. Lines that cannot run are in [`NOT_RUN`].

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Requirement, StackProcess, eventually, optional_program};
use serde_json::Value;

const NOT_RUN: &[(&str, &str)] = &[
    ("cargo stack", "the test starts the stack from its built program"),
    ("eval \"$(cargo stack env)\"", "every shell of the test evaluates `stack env`"),
    ("cargo test", "the test runs under it"),
    ("cargo build --release", "compiles for minutes"),
    ("cargo bench", "compiles and measures for minutes"),
    ("pip install", "needs a package registry"),
    ("npm install", "needs a package registry"),
    ("docker compose", "needs Docker"),
    ("cp .env.sample .env", "prepares docker compose"),
    ("createdb dividends", "needs a second pair of servers; tests/it/backup.rs restores a backup"),
    ("psql -c \"alter role", "completes the restore on a second server"),
    ("tests/", "scripts of .ci/run and tests/nightly"),
];

/// Command lines that may end with an exit code other than 0. Each entry has the beginning of the line, the permitted
/// codes and the reason.
const OTHER_CODES: &[(&str, &[i32], &str)] = &[
    ("ingest load dividends.csv --source desk --max-reject-percent 50", &[1], "the file has a row to refuse"),
    ("ingest freshness", &[1, 2], "some data of the examples is old"),
    ("projector audit", &[4], "the market has findings"),
];

/// Programs that documented lines need. If a program is not installed, the lines that begin with its name are not run.
const OPTIONAL: [(&str, Requirement); 2] = [("curl", Requirement::Curl), ("psql", Requirement::Psql)];

const DIVIDENDS: &str = "symbol,ex_date,payment_date,amount,type,frequency\n\
     TGT,2024-08-21,2024-09-01,1.12,regular,quarterly\n";
const HEALTHY_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct CommandLine {
    page: String,
    text: String,
}

#[tokio::test]
async fn every_command_line_of_readme_and_docs_runs_on_a_fresh_stack() -> Result<()> {
    let lines = documented()?;
    ensure!(lines.len() > 60, "only {} command lines were found", lines.len());
    let absent: BTreeSet<&str> = OPTIONAL
        .into_iter()
        .filter_map(|(name, requirement)| optional_program(name, requirement).is_none().then_some(name))
        .collect();

    let stack = StackProcess::start(&[("notes.csv", "a,b\n1,2\n")]).await?;
    let log = stack.log();
    for text in ["some of the feeds are not loaded:", "/notes.csv: ", "ingest load FILE --source demo"] {
        ensure!(log.contains(text), "no {text} in {log}");
    }
    fs::write(stack.folder().join("dividends.csv"), DIVIDENDS)?;
    let mut background = Vec::new();
    let mut failures = Vec::new();
    for line in lines {
        let program = line.text.split_whitespace().next().unwrap_or_default();
        if NOT_RUN.iter().any(|(start, _)| line.text.starts_with(start)) || absent.contains(program) {
            continue;
        }
        match line.text.strip_suffix(" &") {
            Some(daemon) => background.push(stack.background(&format!("exec {daemon}"))?),
            None => failures.extend(run(&stack, &line).await.err()),
        }
    }
    let report: Vec<String> = failures.iter().map(|failure| format!("{failure:#}")).collect();
    ensure!(failures.is_empty(), "{} documented lines fail:\n\n{}", failures.len(), report.join("\n\n"));
    drop(background);
    stack.stop().await
}

#[tokio::test]
async fn a_stack_without_a_usable_file_ends_and_says_why() -> Result<()> {
    let ended = StackProcess::run_to_end(&[("notes.csv", "a,b\n1,2\n")]).await?;
    ensure!(ended.code == 1, "exit code {}\n{}{}", ended.code, ended.stdout, ended.stderr);
    for text in ["no feed is loaded:", "/notes.csv: ", "every file is refused; correct the files"] {
        ensure!(ended.stderr.contains(text), "no {text} in {}{}", ended.stdout, ended.stderr);
    }
    Ok(())
}

async fn run(stack: &StackProcess, line: &CommandLine) -> Result<()> {
    let text = match line.text.contains(" RUN") {
        true => line.text.replace(" RUN", &format!(" {}", last_load(stack).await?)),
        false => line.text.clone(),
    };
    let other = OTHER_CODES.iter().find(|(start, ..)| text.starts_with(start));
    let attempt = async || {
        let output = stack.shell(&text).await?;
        let permitted = output.code == 0 || other.is_some_and(|(_, codes, _)| codes.contains(&output.code));
        ensure!(
            permitted,
            "{}: {text}\nexit code {}\n{}{}",
            line.page,
            output.code,
            output.stdout,
            output.stderr
        );
        Ok(())
    };
    // `ingest health` may run while the background command of the line before is still starting, so the check is
    // repeated.
    if text.starts_with("ingest health") {
        eventually(HEALTHY_WITHIN, attempt).await
    } else {
        attempt().await
    }
}

/// Returns the run id of the newest load from the source `desk`.
async fn last_load(stack: &StackProcess) -> Result<String> {
    let runs = stack.shell("ingest runs --json").await?.success()?;
    let manifests = runs.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut loads = manifests.filter(|run| run["source"] == "desk" && run["undo"].is_null());
    let last = loads.next_back().with_context(|| format!("no load in {}", runs.stdout))?;
    Ok(last["run"].as_str().context("a manifest without a run")?.to_owned())
}

/// Returns the command lines of README.md, followed by those of the pages in docs/ in alphabetical order.
fn documented() -> Result<Vec<CommandLine>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages: Vec<PathBuf> = vec![workspace.join("README.md")];
    let mut docs = Vec::new();
    for entry in fs::read_dir(workspace.join("docs"))? {
        docs.push(entry?.path());
    }
    docs.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    docs.sort();
    pages.extend(docs);

    let mut lines = Vec::new();
    for page in pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
        lines.extend(command_lines(&text)?.into_iter().map(|text| CommandLine { page: name.clone(), text }));
    }
    Ok(lines)
}

fn command_lines(page: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut command_column = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            if matches!(language, "sh" | "console") {
                found.extend(lines_of_block(&block)?);
            }
            command_column = None;
        } else if line.starts_with('|') {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            match command_column {
                None => {
                    let column = cells.iter().position(|cell| matches!(*cell, "command" | "script"));
                    command_column = Some(column);
                }
                Some(Some(column)) => {
                    found.extend(code_spans(cells.get(column).copied().unwrap_or_default()))
                }
                Some(None) => {}
            }
        } else {
            command_column = None;
        }
    }
    Ok(found)
}

/// Splits a block into command lines. Continuation lines and here-documents belong to their command.
fn lines_of_block(block: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = (*line).to_owned();
        while command.ends_with('\\') {
            command = format!("{command}\n{}", lines.next().context("a block ends amid a command")?);
        }
        if let Some((_, end)) =
            line.split_once("<<'").and_then(|(_, rest)| Some((rest, rest.split('\'').next()?)))
        {
            loop {
                let next = lines.next().context("a block ends amid a here-document")?;
                command = format!("{command}\n{next}");
                if *next == end {
                    break;
                }
            }
        }
        found.push(command);
    }
    Ok(found)
}

fn code_spans(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn command_lines_come_from_blocks_and_command_tables() -> Result<()> {
    let page = "text `ls`\n```sh\n# comment\ncat > x <<'END'\na\nEND\none \\\n  two\n```\n```toml\na = 1\n```\n\
        | task | command |\n|---|---|\n| `no` | `three`, `four` |\n\n| a | b |\n|---|---|\n| x | `no` |\n";
    let found = command_lines(page)?;
    ensure!(found == ["cat > x <<'END'\na\nEND", "one \\\n  two", "three", "four"], "{found:?}");
    Ok(())
}
