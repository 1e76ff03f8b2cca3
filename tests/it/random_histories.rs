//! Random sequences of new rows, changed rows, renames, policies and restarts. After any sequence, the served tables
//! equal those of a fresh rebuild.
//!
//! `SEQUENCES_SEED` repeats the sequence with the printed seed. `SEQUENCES_RUNS` sets the number of sequences.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use harness::{Daemon, Program, TestApp, number_variable};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::fact_cache::settled;
use crate::generations::answer;
pub(crate) use run_states::change_random_run;

mod run_states;

const SYMBOLS: usize = 6;
const STEPS: usize = 24;
const WEEKS_BEFORE: u64 = 200;
pub(crate) const SOURCES: [&str; 2] = ["left", "right"];
/// Exit code of a load that its gate holds.
const HELD: i32 = 4;

pub(crate) struct RandomHistory {
    pub(crate) random: StdRng,
    pub(crate) symbols: Vec<String>,
    pub(crate) day: NaiveDate,
    said: i64,
    /// Pairs of the new and the former symbol.
    renames: Vec<(String, String)>,
}

impl RandomHistory {
    pub(crate) fn new(seed: u64) -> Self {
        let symbols = (0..SYMBOLS).map(|number| format!("S{number:02}")).collect();
        let day = NaiveDate::from_ymd_opt(2022, 3, 1).unwrap_or_default();
        Self { random: StdRng::seed_from_u64(seed), symbols, day, said: 0, renames: Vec::new() }
    }

    fn symbol(&mut self) -> String {
        self.symbols.choose(&mut self.random).cloned().unwrap_or_default()
    }

    fn past(&mut self) -> NaiveDate {
        let days = self.random.random_range(0..400);
        self.day.checked_sub_days(Days::new(days)).unwrap_or(self.day)
    }

    /// Adds a random revision and a random action to a row of a feed. Each row is observed a second after the previous
    /// one.
    fn row(&mut self, mut fields: Value) -> Value {
        self.said += 1;
        let observed = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(19_000) + TimeDelta::seconds(self.said);
        fields["observed_at"] = json!(observed);
        fields["revision"] = self.random.random_range(0..3).into();
        fields["action"] = if self.random.random_bool(0.2) { "retract" } else { "put" }.into();
        fields
    }

    fn close(&mut self) -> String {
        format!("{}.{:02}", self.random.random_range(40..60), self.random.random_range(0..100))
    }

    /// Returns weekly bars of every symbol for the years before the first day. In old years, the projector loads closes
    /// without the other columns of a bar.
    pub(crate) fn years_before(&mut self) -> Vec<Value> {
        let symbols = self.symbols.clone();
        let days = (1..=WEEKS_BEFORE).filter_map(|week| self.day.checked_sub_days(Days::new(7 * week)));
        let days: Vec<NaiveDate> = days.collect();
        let of_day = |day: NaiveDate| symbols.iter().map(move |symbol| (symbol, day));
        days.into_iter().flat_map(of_day).map(|(symbol, day)| self.bar(symbol, day)).collect()
    }

    /// Returns a bar of a symbol, with the action `put` and the revision 0.
    fn bar(&mut self, symbol: &str, day: NaiveDate) -> Value {
        let close = self.close();
        let mut row = self.row(json!({ "kind": "price", "symbol": symbol, "date": day, "close": close }));
        (row["action"], row["revision"]) = ("put".into(), 0.into());
        row
    }

    /// Moves to the next session and returns a bar of every symbol.
    pub(crate) fn next_day(&mut self) -> Vec<Value> {
        let ahead = self.random.random_range(1..40);
        self.day = self.day.checked_add_days(Days::new(ahead)).unwrap_or(self.day);
        let (day, symbols) = (self.day, self.symbols.clone());
        symbols.iter().map(|symbol| self.bar(symbol, day)).collect()
    }

    /// Returns one random row, for example a price, a rename or an outlier.
    pub(crate) fn news(&mut self) -> Vec<Value> {
        let (symbol, past) = (self.symbol(), self.past());
        let fields = match self.random.random_range(0..9) {
            0 => json!({ "kind": "price", "symbol": symbol, "date": past, "close": self.close() }),
            1 => json!({ "kind": "dividend", "symbol": symbol, "ex_date": past, "amount": "0.25" }),
            // A record with a vendor's id. The next row with that id may have another symbol.
            2 => {
                let id = format!("d-{}", self.random.random_range(0..4));
                json!({ "kind": "dividend", "symbol": symbol, "ex_date": past, "amount": "0.75", "id": id })
            }
            3 => json!({ "kind": "split", "symbol": symbol, "ex_date": past, "from": "1", "to": "2" }),
            4 => json!({ "kind": "session", "date": self.day }),
            5 => return vec![self.listing(past)],
            // An outlier: a close or an amount that contradicts the others.
            8 if self.random.random_bool(0.5) => {
                json!({ "kind": "price", "symbol": symbol, "date": self.day, "close": "4999.00" })
            }
            8 => json!({ "kind": "dividend", "symbol": symbol, "ex_date": past, "amount": "25" }),
            6 if !self.renames.is_empty() => return vec![self.withdrawn_rename()],
            _ => return vec![self.rename(&symbol)],
        };
        vec![self.row(fields)]
    }

    /// Returns a random row of a kind that has no dates of its own in [`Self::news`]: fundamentals, a fund or a holding.
    fn reference_row(&mut self) -> Value {
        let (symbol, other, past) = (self.symbol(), self.symbol(), self.past());
        let number = self.random.random_range(1..9);
        let fields = match self.random.random_range(0..3) {
            0 => {
                json!({ "kind": "fundamentals", "symbol": symbol, "as_of": past, "eps_ttm": format!("2.{number}") })
            }
            1 => {
                json!({ "kind": "etf", "symbol": symbol, "as_of": past, "expense_ratio": format!("0.0{number}") })
            }
            _ => {
                json!({ "kind": "holding", "etf_symbol": symbol, "as_of": past, "name": other, "symbol": other, "weight": number.to_string() })
            }
        };
        let mut row = self.row(fields);
        row["action"] = "put".into();
        row
    }

    /// Adds a new symbol and returns its first dividend. A later rename may give this symbol to another security.
    fn listing(&mut self, past: NaiveDate) -> Value {
        let fresh = format!("N{:03}", self.said);
        let mut row =
            self.row(json!({ "kind": "dividend", "symbol": fresh, "ex_date": past, "amount": "0.35" }));
        row["action"] = "put".into();
        self.symbols.push(fresh);
        row
    }

    /// Returns a rename of `symbol` to an unused symbol or to a symbol that already has rows.
    fn rename(&mut self, symbol: &str) -> Value {
        let others: Vec<String> = self.symbols.iter().filter(|other| *other != symbol).cloned().collect();
        let known = others.choose(&mut self.random).filter(|other| other.starts_with('N'));
        let next = known.cloned().unwrap_or_else(|| format!("N{:03}", self.said));
        self.renames.push((next.clone(), symbol.to_owned()));
        self.symbols.retain(|known| known != symbol && *known != next);
        self.symbols.push(next.clone());
        self.security(&next, symbol, "put")
    }

    /// Returns the retraction of an earlier rename. The former symbol becomes a separate security again.
    fn withdrawn_rename(&mut self) -> Value {
        let renames = self.renames.clone();
        let (next, former) = renames.choose(&mut self.random).cloned().unwrap_or_default();
        if !self.symbols.contains(&former) {
            self.symbols.push(former.clone());
        }
        let mut row = self.security(&next, &former, "retract");
        row["revision"] = 3.into();
        row
    }

    fn security(&mut self, symbol: &str, former: &str, action: &str) -> Value {
        let until = self.past();
        let former = json!([{ "symbol": former, "to": until }]);
        let mut row = self.row(json!({
            "kind": "security", "symbol": symbol, "name": symbol, "type": "stock", "former_symbols": former,
        }));
        row["action"] = action.into();
        row
    }
}

pub(crate) async fn load(app: &TestApp, step: usize, source: &str, rows: &[Value]) -> Result<()> {
    load_files(app, source, &[(&name_of(step), &text_of(rows))], &[]).await
}

/// Loads rows as a run that is held.
pub(crate) async fn stage(app: &TestApp, step: usize, source: &str, rows: &[Value]) -> Result<()> {
    load_files(app, source, &[(&name_of(step), &text_of(rows))], &["--stage"]).await
}

fn name_of(step: usize) -> String {
    format!("step-{step:03}.ndjson")
}

fn text_of(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Writes feed files, pairs of name and text, and loads them as one run. A load that its gate holds succeeds too.
async fn load_files(app: &TestApp, source: &str, files: &[(&str, &str)], options: &[&str]) -> Result<()> {
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = app.folder().join(name);
        std::fs::write(&path, text)?;
        paths.push(path.display().to_string());
    }
    let mut arguments = vec!["load", "--source", source, "--today", "2026-01-02"];
    arguments.extend(options.iter().copied().chain(paths.iter().map(String::as_str)));
    let loaded = app.ingest(&arguments).await?;
    if loaded.code != HELD {
        loaded.success().with_context(|| format!("loading {files:?}"))?;
    }
    Ok(())
}

pub(crate) async fn change_policy(app: &TestApp, random: &mut StdRng) -> Result<()> {
    let kind = ["price", "dividend", "split"].choose(random).copied().unwrap_or("price");
    let source = SOURCES.choose(random).copied().unwrap_or("left");
    let rank = random.random_range(1..4).to_string();
    app.projector(&["policy", "set", kind, source, "--rank", &rank, "--unknown-ok", "--now"])
        .await?
        .success()?;
    Ok(())
}

/// Releases or confirms a random quarantined row, or revokes the decision on the row. The command may fail, because
/// some rows cannot be released and some have no decision.
pub(crate) async fn decide(app: &TestApp, random: &mut StdRng) -> Result<()> {
    let listed = answer(app, &["quarantine", "list"]).await?;
    let rows = listed.as_array().cloned().unwrap_or_default();
    let Some(row) = rows.choose(random) else { return Ok(()) };
    let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let (symbol, kind) = (field("symbol"), field("kind"));
    let verb = ["release", "confirm", "revoke"].choose(random).copied().unwrap_or("confirm");
    let arguments = ["quarantine", verb, &symbol, "--kind", &kind, "--all", "--note", "A test."];
    drop(app.projector(&arguments).await?);
    Ok(())
}

/// Kills the projector if one runs, and starts one otherwise. Some steps of a sequence therefore run while a projector
/// has facts in its cache.
async fn restart(app: &TestApp, live: &mut Option<Daemon>) -> Result<()> {
    match live.take() {
        Some(mut running) => {
            settled(app, 1).await?;
            running.kill9()?;
        }
        None => *live = Some(app.spawn(Program::Projector, &["run"]).await?),
    }
    Ok(())
}

async fn random_sequence(seed: u64) -> Result<()> {
    let mut sequence = RandomHistory::new(seed);
    let bytes = ["1", "2000", "33554432"].choose(&mut sequence.random).copied().unwrap_or("1");
    // The cache of facts has no memory, little memory that is soon full, or more memory than it needs.
    let memory = ["0", "15000", "1000000"].choose(&mut sequence.random).copied().unwrap_or("0");
    let app = TestApp::builder()
        .env("PROJECTOR_LEASE_SECONDS", "1")
        .env("PROJECTOR_BATCH_BYTES", bytes)
        .env("PROJECTOR_MEMORY", memory)
        .start()
        .await?;
    let sources = &SOURCES[..sequence.random.random_range(1..=SOURCES.len())];
    load(&app, STEPS, SOURCES[0], &sequence.years_before()).await?;
    let mut live = None;
    for step in 0..STEPS {
        let source = sources.choose(&mut sequence.random).copied().unwrap_or("left");
        match sequence.random.random_range(0..13) {
            0..4 => load(&app, step, source, &sequence.next_day()).await?,
            4..8 => load(&app, step, source, &sequence.news()).await?,
            8 => change_policy(&app, &mut sequence.random).await?,
            10 => change_random_run(&app, &mut sequence.random).await?,
            11 => stage(&app, step, source, &sequence.news()).await?,
            _ => restart(&app, &mut live).await?,
        }
        if live.is_none() && sequence.random.random_bool(0.5) {
            app.catch_up().await?;
        }
    }
    if live.is_some() {
        restart(&app, &mut live).await?;
    }
    equals_rebuilds(&app).await
}

/// Applies the log, and compares the tables with those of rebuilds from the facts and from the log.
async fn equals_rebuilds(app: &TestApp) -> Result<()> {
    app.catch_up().await?;
    for (from, generation) in [("facts", "2"), ("log", "3")] {
        answer(app, &["rebuild", "--from", from]).await?;
        let diff = answer(app, &["diff", "--whole", "1", generation]).await?;
        ensure!(diff["identical"] == true, "rebuilt from {from}: {diff}");
    }
    Ok(())
}

#[tokio::test]
async fn after_any_sequence_of_news_the_tables_are_those_of_a_fresh_rebuild() -> Result<()> {
    let first = number_variable("SEQUENCES_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    for seed in first..first + number_variable("SEQUENCES_RUNS").unwrap_or(2) {
        random_sequence(seed).await.with_context(|| format!("repeat with SEQUENCES_SEED={seed}"))?;
    }
    Ok(())
}
