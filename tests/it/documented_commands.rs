//! Tests that run the command lines of README.md and of each page in docs/ on a fresh stack with the demo market. A page
//! depends on no other page.
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
    ("bean-price", "needs a package of a registry; tests/recipes/run runs it"),
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

/// Size of the demo market. With fewer securities than the default, the stack starts in seconds.
const DEMO: [&str; 4] = ["--symbols", "60", "--years", "12"];

/// Declares one test for each page with command lines.
macro_rules! pages {
    ($($test:ident: $page:literal),+ $(,)?) => {
        const PAGES: &[&str] = &[$($page),+];
        $(#[tokio::test]
        async fn $test() -> Result<()> {
            run_page($page).await
        })+
    };
}

pages! {
    commands_of_the_readme_run: "README.md",
    commands_of_access_run: "docs/access.md",
    commands_of_clients_run: "docs/clients.md",
    commands_of_feeds_run: "docs/feeds.md",
    commands_of_the_log_run: "docs/log.md",
    commands_of_operations_run: "docs/operations.md",
    commands_of_rebuilds_run: "docs/rebuilds.md",
    commands_of_the_recipes_run: "docs/recipes.md",
}

#[test]
fn every_page_with_command_lines_has_a_test() -> Result<()> {
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(workspace().join("docs"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        pages.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    let mut found = 0;
    for page in pages {
        let lines = documented(&page)?;
        found += lines.len();
        let is_tested = PAGES.contains(&page.as_str());
        ensure!(
            is_tested || lines.iter().all(|line| is_not_run(line)),
            "add {page} to the pages of this test"
        );
        let curls = lines.iter().filter(|line| line.contains("curl "));
        for line in curls {
            ensure!(line.contains("curl --fail"), "{page}: an error of curl would be no failure: {line}");
        }
    }
    ensure!(found > 100, "only {found} command lines were found");
    Ok(())
}

async fn run_page(page: &str) -> Result<()> {
    let lines = documented(page)?;
    let absent: BTreeSet<&str> = OPTIONAL
        .into_iter()
        .filter_map(|(name, requirement)| optional_program(name, requirement).is_none().then_some(name))
        .collect();

    let stack = StackProcess::start(&DEMO).await?;
    fs::write(stack.folder().join("dividends.csv"), DIVIDENDS)?;
    let mut background = Vec::new();
    let mut failures = Vec::new();
    for line in lines {
        let program = line.split_whitespace().next().unwrap_or_default();
        if is_not_run(&line) || absent.contains(program) {
            continue;
        }
        match line.strip_suffix(" &") {
            Some(daemon) => background.push(stack.background(&format!("exec {daemon}"))?),
            None => failures.extend(run(&stack, &line).await.err()),
        }
    }
    let report: Vec<String> = failures.iter().map(|failure| format!("{failure:#}")).collect();
    ensure!(failures.is_empty(), "{} lines of {page} fail:\n\n{}", failures.len(), report.join("\n\n"));
    drop(background);
    stack.stop().await
}

/// The demo market has corrected, late, replaced and quarantined rows, and its first version is still answered.
#[tokio::test]
async fn the_demo_market_has_a_past() -> Result<()> {
    let stack = StackProcess::start(&DEMO).await?;
    let call = async |path: &str| call(&stack, path).await;
    for (security, metric) in [("KO", "dps_forward"), ("PEP", "ttm_payment_count")] {
        let now = call(&format!("stocks/{security}/metrics?fields={metric}")).await?;
        let first =
            call(&format!("stocks/{security}/metrics?fields={metric}&data_version=$DEMO_VERSION")).await?;
        ensure!(now["data"] != first["data"], "{security}: {now} {first}");
        let known =
            call(&format!("stocks/{security}/metrics?fields={metric}&known_at=$DEMO_KNOWN_AT")).await?;
        ensure!(known["data"] == first["data"], "{security}: {known} {first}");
    }
    for security in ["KO", "PEP", "MSFT"] {
        let revisions = call(&format!("stocks/{security}/revisions")).await?;
        ensure!(revisions["data"].as_array().is_some_and(|rows| !rows.is_empty()), "{security}: {revisions}");
    }
    let held = stack.shell("projector quarantine list --json").await?.success()?.stdout;
    ensure!(held.contains("JNJ") && held.contains("isolated_price"), "{held}");
    let runs = stack.shell("ingest runs").await?.success()?.stdout;
    ensure!(runs.contains("excluded by demo") && runs.ends_with("5 runs\n"), "{runs}");
    let audit = stack.shell("projector audit || [ $? = 4 ]").await?.success()?.stdout;
    ensure!(audit.contains("desk covers dividend rows of demo"), "{audit}");
    stack.stop().await
}

/// Figures of two currencies: the fund of README.md trades in pounds and pays dollars, and a receipt trades in dollars and
/// reports in euros.
#[tokio::test]
async fn the_demo_market_has_converted_figures() -> Result<()> {
    let stack = StackProcess::start(&DEMO).await?;
    let fund = call(&stack, "stocks/SADAVA.L/metrics").await?["data"].take();
    let flags = fund["flags"].as_array().context("flags")?;
    ensure!((&fund["price_currency"], &fund["currency"]) == (&"GBP".into(), &"USD".into()), "{fund}");
    ensure!(fund["dividend_yield"].is_number() && flags.contains(&"converted".into()), "{fund}");
    let listings = call(&stack, "stocks/SADAVA.L").await?["data"]["listings"].take();
    let currencies: Vec<&str> = listings
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|listing| listing["currency"].as_str())
        .collect();
    ensure!(currencies == ["EUR", "GBP", "USD"], "{listings}");
    let quote = call(&stack, "stocks/BITEVI").await?["data"].take();
    let receipt = call(&stack, "stocks/BITEVI/fundamentals").await?["data"].take();
    ensure!((&quote["type"], &quote["currency"]) == (&"adr".into(), &"USD".into()), "{quote}");
    ensure!(receipt["reported_currency"] == "EUR" && receipt["pe_ratio"].is_number(), "{receipt}");
    stack.stop().await
}

/// Calls the API of a stack with the key of the highest tier.
async fn call(stack: &StackProcess, path: &str) -> Result<Value> {
    let line =
        format!("curl --fail -s -H \"Authorization: Bearer $KEY_PROFESSIONAL\" \"$API_URL/v1/{path}\"");
    stack.shell(&line).await?.success()?.json()
}

/// A second stack that starts in the shell of a first one has servers of its own, and outlives the first.
#[tokio::test]
async fn a_stack_in_the_shell_of_another_one_has_its_own_servers() -> Result<()> {
    let first = StackProcess::start(&["--empty"]).await?;
    let second = first.start_in_its_shell(&["--empty"]).await?;
    let address = async |stack: &StackProcess| -> Result<String> {
        Ok(stack.shell("echo $NATS_URL $DATABASE_URL $PUBLIC_URL").await?.success()?.stdout)
    };
    let (first_servers, second_servers) = (address(&first).await?, address(&second).await?);
    for url in first_servers.split_whitespace() {
        ensure!(!second_servers.contains(url), "{first_servers} {second_servers}");
    }
    first.stop().await?;
    second.shell("curl --fail -s \"$API_URL/v1/health\" && ingest runs").await?.success()?;
    second.stop().await
}

#[tokio::test]
async fn a_stack_names_the_files_that_it_does_not_load() -> Result<()> {
    let stack =
        StackProcess::start_with(&[("notes.csv", "a,b\n1,2\n"), ("dividends.csv", DIVIDENDS)]).await?;
    let log = stack.log();
    for text in ["some of the feeds are not loaded:", "/notes.csv: ", "ingest load FILE --source local"] {
        ensure!(log.contains(text), "no {text} in {log}");
    }
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

fn is_not_run(line: &str) -> bool {
    NOT_RUN.iter().any(|(start, _)| line.starts_with(start))
}

async fn run(stack: &StackProcess, line: &str) -> Result<()> {
    let text = match line.contains(" RUN") {
        true => line.replace(" RUN", &format!(" {}", last_load(stack).await?)),
        false => line.to_owned(),
    };
    let other = OTHER_CODES.iter().find(|(start, ..)| text.starts_with(start));
    let attempt = async || {
        let output = stack.shell(&text).await?;
        let permitted = output.code == 0 || other.is_some_and(|(_, codes, _)| codes.contains(&output.code));
        ensure!(permitted, "{text}\nexit code {}\n{}{}", output.code, output.stdout, output.stderr);
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

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Command lines of a page.
fn documented(page: &str) -> Result<Vec<String>> {
    command_lines(&fs::read_to_string(workspace().join(page)).with_context(|| format!("reading {page}"))?)
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
