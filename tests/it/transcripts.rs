//! Comparison of the output of `ingest`, `projector` and `api` with the transcripts in `tests/fixtures/transcripts/`.
//!
//! The output has 80 or 140 columns. Values that differ between runs, such as times and secrets, are masked.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use harness::{Program, TestApp};

/// Placeholder of a character that `mask_digits` removes.
const REMOVED: char = '\0';
const WIDTHS: [&str; 2] = ["80", "140"];

const FILES: &[(&str, &str)] = &[
    (
        "dividends.csv",
        "symbol,ex_date,payment_date,amount,type,frequency\n\
      TGT,2024-03-20,2024-04-01,1.10,regular,quarterly\n\
      TGT,2024-06-20,2024-07-01,1.12,regular,quarterly\n\
      TGT,2025-13-12,2025-03-01,1.12,regular,quarterly\n",
    ),
    ("prices.csv", "symbol,date,close\nTGT,2024-06-27,148.04\nTGT,2024-06-28,150\nKO,2024-06-28,63.65\n"),
    ("drop/splits.csv", "symbol,ex_date,from,to\nKO,2012-08-13,1,2\n"),
    ("drop/other.csv", "a,b\n1,2\n"),
    ("bad/dividends.csv", "symbol,ex_date,amount\nKO,no date,0.485\nKO,2024-06-14,many\n"),
    ("inbox/splits.csv", "symbol,ex_date,from,to\nTGT,2000-07-20,1,2\n"),
    ("inbox/other.csv", "a,b\n1,2\n"),
    ("second/prices.csv", "symbol,date,close\nTGT,2024-06-28,15\n"),
];

/// Commands in order. `#` begins a heading. A command after `~` is not in the transcript. `RUN` is the run id that the
/// latest `ingest load` printed.
const SCRIPT: &str = "
# ingest: an empty log
ingest runs
ingest rejects
ingest freshness
ingest show 1
ingest verify
ingest undo 0123
ingest map
# ingest: loads
ingest load absent.csv --source desk
ingest load prices.csv
ingest load dividends.csv --source desk --dry-run
ingest load dividends.csv --source desk
ingest load dividends.csv --source desk --max-reject-percent 50
ingest load dividends.csv --source desk --max-reject-percent 50
ingest load prices.csv --source desk
ingest load drop --source drop
ingest load drop --source drop
ingest load bad --source bad
ingest load second --source other
# ingest: lists
ingest runs
ingest runs --limit 2
ingest undo RUN --dry-run
ingest undo RUN
ingest undo RUN
ingest runs
ingest rejects
ingest rejects --source drop
ingest rejects --limit 0 --all
ingest freshness --at 2024-07-01T16:00:00Z
ingest freshness --at 2024-07-01T16:00:00Z --source dezk
ingest freshness --at 2024-07-01T16:00:00Z --kind split
ingest verify
ingest resume
# ingest: folders, vendors and copies
ingest watch inbox --source inbox --once --settle 0s
ingest watch inbox --source inbox --once --settle 0s
ingest watch absent --source inbox --once
ingest pull tiingo --once
ingest pull absent --once
ingest pull tiingo --symbols KO --since 2024-01-01 --dry-run
ingest pull --help
ingest export log.zst
ingest export log.zst
ingest import log.zst
ingest import absent.zst
ingest show 1
ingest show 999
ingest rejects --help
ingest resume
ingest health
# ingest: help and failures
ingest map --help
ingest runs --help
ingest runs --nats-url nats://127.0.0.1:1
ingest runs --nats-url=
ingest runs --nats-subject-prefix other
ingest load prices.csv --source desk --nats-stream OTHER
# projector: before the first message
projector list
projector policy list
projector dead-letters list
projector dead-letters show 1
projector dead-letters retry
projector quarantine list
projector audit
~ projector run --until-caught-up
# projector: with data
projector list
projector status
projector quarantine list
projector audit
projector explain TGT dps_ttm
projector explain KO dividend_yield
projector explain TGT price --date 2024-06-28
projector explain NONE dps_ttm
projector explain TGT dps_tmm
projector rules --limit 3
projector policy set dividend desk --rank 1
projector policy set price desk --rank 1 --now
projector policy list
projector pause
projector resume
~ projector rebuild
projector list
projector diff 1 2
projector drop 2
projector drop 9
projector promote 9
projector rollback
projector publish --to out
projector quarantine release KO
projector quarantine release NONE --note checked
projector dead-letters show 5
projector dead-letters retry 5
projector policy remove dividend absent
projector rebuild --rule streak.tolerence=1
projector rebuild --only stock
projector audit --since 0123
~ projector run --until-caught-up
projector backup backup
projector backup backup
projector restore absent
projector restore backup
# projector: failures
projector list --projector-database-url postgres://user:secret@127.0.0.1:1/dividends
projector migrate --database-url=
projector explain
projector rules --help
# api: before the first account
api account list
api key list ann@example.com
api usage ann@example.com
api audit ann@example.com
# api: accounts
api account create ann@example.com --tier premium
api account create ann@example.com
api key list ann@example.com
api key create ann@example.com --name laptop
api key create ann@example.com --name laptop
api key list ann@example.com
api account set-tier ann@example.com free --after-period
api account list
api account sessions ann@example.com
api usage ann@example.com
api usage ann@example.com --calls 30
api account disable ann@example.com
api account enable ann@example.com
api key delete ann@example.com 99
api account delete ann@example.com
api account list
api account show ann@example.com
api health --help
";

#[tokio::test]
async fn commands_print_what_the_transcripts_have() -> Result<()> {
    let recorded = try_join_all(WIDTHS.map(record)).await?;
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/transcripts");
    let mut changed = Vec::new();
    for (width, text) in WIDTHS.iter().zip(&recorded) {
        let known = fs::read_to_string(committed.join(format!("{width}.txt"))).unwrap_or_default();
        if known != *text {
            let new = std::env::temp_dir().join(format!("new-transcript-{width}.txt"));
            fs::write(&new, text)?;
            let (line, found) = text
                .lines()
                .enumerate()
                .find(|(at, line)| known.lines().nth(*at) != Some(line))
                .unwrap_or((known.lines().count(), "(the end)"));
            changed.push(format!(
                "at {width} columns, line {}: {found}\n  if that is right: cp {} {}",
                line + 1,
                new.display(),
                committed.join(format!("{width}.txt")).display()
            ));
        }
    }
    match changed.is_empty() {
        true => Ok(()),
        false => bail!("the output of commands changed\n{}", changed.join("\n")),
    }
}

/// Runs the script on a new service, with output of `width` columns. Returns the masked transcript.
async fn record(width: &str) -> Result<String> {
    let app = TestApp::builder()
        .env("SERVICE_DATE", "2024-06-30")
        .env("COLUMNS", width)
        .env("USER", "ann")
        .start()
        .await?;
    for (name, text) in FILES {
        let path = app.folder().join(name);
        fs::create_dir_all(path.parent().context("a file in a folder")?)?;
        fs::write(path, text)?;
    }
    let (mut transcript, mut last_run, mut key_ends) = (String::new(), String::new(), Vec::new());
    for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            transcript += &format!("{line}\n\n");
            continue;
        }
        let command = line.trim_start_matches("~ ").replace("RUN", &last_run);
        let mut words = command.split(' ');
        let program = match words.next() {
            Some("ingest") => Program::Ingest,
            Some("projector") => Program::Projector,
            Some("api") => Program::Api,
            other => bail!("{other:?} is not a program"),
        };
        let output = app.run(program, &words.collect::<Vec<_>>(), &[]).await?;
        if line.starts_with('~') {
            output.success()?;
            continue;
        }
        let mut words = output.stdout.split([' ', ':', '\n']);
        let is_run = |word: &&str| word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit());
        if let Some(run) = words.rfind(is_run).filter(|_| line.starts_with("ingest load")) {
            last_run = run.to_owned();
        }
        if let Some(end) = output.stdout.lines().find_map(|line| line.strip_prefix("last_four: ")) {
            key_ends.push(end.to_owned());
        }
        transcript += &format!("$ {command}\n{}{}", output.stdout, output.stderr);
        transcript += &format!("(exit code {})\n\n", output.code);
    }
    for end in &key_ends {
        transcript = transcript.replace(end, "####");
    }
    Ok(mask(&app, &transcript))
}

fn mask(app: &TestApp, text: &str) -> String {
    let endpoints = app.endpoints();
    let text = text
        .replace(&app.folder().display().to_string(), "FOLDER")
        .replace(&endpoints.nats_url, "NATS")
        .replace(&endpoints.stream, "STREAM")
        .replace(app.database(), "DATABASE")
        .replace(&endpoints.subject_prefix, "PREFIX");
    let mut masked: String = text.lines().map(|line| mask_digits(&mask_end(line)) + "\n").collect();
    masked.push('\n');
    masked
}

/// Replaces the value in a line such as `secret: abc` by `…`. The values of these lines are secrets or dates.
fn mask_end(line: &str) -> String {
    for start in ["secret: ", "last_four: ", "month: ", "resets_at: "] {
        if line.starts_with(start) {
            return format!("{start}…");
        }
    }
    line.to_owned()
}

/// Replaces the digits of times, ports, durations, sizes and speeds by `#`.
fn mask_digits(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let shape: String = characters.iter().map(|c| if c.is_ascii_digit() { '0' } else { *c }).collect();
    let mut masked = characters.clone();
    let patterns = [
        "0000-00-00 00:00",
        "0000-00-00T00:00:00.000000Z",
        "0000-00-00T00:00:00",
        "127.0.0.1:00000",
        ".000 s",
        ".0 s",
        ".0 MB",
        "0/s",
    ];
    let shape: Vec<char> = shape.chars().collect();
    for pattern in patterns {
        let wanted: Vec<char> = pattern.replace("127.0.0.1", "000.0.0.0").chars().collect();
        for start in 0..shape.len().saturating_sub(wanted.len() - 1) {
            if shape[start..start + wanted.len()] != wanted {
                continue;
            }
            let digits = pattern.chars().enumerate().filter(|(_, c)| *c == '0').map(|(at, _)| start + at);
            digits.for_each(|at| masked[at] = '#');
            // The number of digits of a duration, size or speed varies, so the digits before the pattern are removed.
            if pattern.starts_with('.') || pattern == "0/s" {
                (0..start).rev().take_while(|at| shape[*at] == '0').for_each(|at| masked[at] = REMOVED);
            }
        }
    }
    masked.into_iter().filter(|character| *character != REMOVED).collect()
}
