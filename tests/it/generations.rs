//! Tests of an analyst's workflow: build a second generation, compare it, promote it, and roll back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, Program, TestApp, eventually, generate_market};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `projector` with `--json` and returns its output.
pub(crate) async fn answer(app: &TestApp, arguments: &[&str]) -> Result<Value> {
    app.projector(&[arguments, &["--json"]].concat()).await?.success()?.json()
}

pub(crate) async fn load(app: &TestApp, name: &str, source: &str, text: &str) -> Result<()> {
    let folder = app.folder().join(source);
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    let path = path.display().to_string();
    let arguments = ["load", &path, "--source", source, "--today", "2024-06-30"];
    app.ingest(&arguments).await?.success()?;
    Ok(())
}

async fn market(app: &TestApp) -> Result<()> {
    let folder = app.folder().join("market").display().to_string();
    generate_market(&folder, "--symbols 40 --years 3 --seed 5 --until 2024-06-28")?;
    app.ingest(&["load", &folder, "--source", "test"]).await?.success()?;
    app.catch_up().await
}

/// Starts an app with two sources that disagree about one close. Without a policy, the later observation wins.
pub(crate) async fn two_sources() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    load(
        &app,
        "prices.csv",
        "left",
        "symbol,date,close,observed_at\nTWIN,2024-06-28,20,2024-06-28T22:00:00Z\n",
    )
    .await?;
    load(
        &app,
        "prices.csv",
        "right",
        "symbol,date,close,observed_at\nTWIN,2024-06-28,10,2024-06-28T21:00:00Z\n",
    )
    .await?;
    app.catch_up().await?;
    Ok(app)
}

pub(crate) fn policy(folder: &Path, first: &str) -> Result<String> {
    let path = folder.join("policy.json");
    let rules = json!([{ "kind": "price", "source": first, "from": null, "to": null, "rank": 1 }]);
    std::fs::write(&path, rules.to_string())?;
    Ok(path.display().to_string())
}

async fn price(api: &Api, key: &str) -> Result<(String, Value)> {
    let reply = api.get("/v1/stocks/TWIN/quote", Some(key)).await?;
    ensure!(reply.status == 200, "{}: {}", reply.status, reply.text());
    let body = reply.json()?;
    let version = body["meta"]["data_version"].as_str().context("a data version")?.to_owned();
    Ok((version, body["data"]["price"].clone()))
}

/// Two clients that continuously request the quote of the symbol TWIN. They fail at an error, or if an answer mixes two
/// generations.
pub(crate) struct Readers {
    api: Arc<Api>,
    key: String,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Result<Vec<String>>>>,
}

impl Readers {
    pub(crate) async fn start(app: &TestApp) -> Result<Self> {
        // Other tests check the limits, so this test raises them.
        let unlimited = "update accounts.tiers set rate_per_minute = 1000000, burst = 1000000 where tier = 'professional'";
        app.sql(unlimited, &[]).await?;
        let many = [("ADDRESS_CALLS_PER_MINUTE", "10000000"), ("ADDRESS_CALLS_BURST", "10000000")];
        let api = Arc::new(app.api_serve_with(&many).await?);
        let keys = [app.key("professional").await?, app.key("professional").await?];
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let clients = keys.clone().map(|key| {
            let (api, stop, answered) = (Arc::clone(&api), Arc::clone(&stop), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let (version, price) = price(&api, &key).await?;
                    let wanted = if version.starts_with("g1.") { json!(20) } else { json!(10) };
                    ensure!(price == wanted, "{version} answered {price}");
                    if seen.last() != Some(&version) {
                        seen.push(version);
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(seen)
            })
        });
        let [key, _] = keys;
        Ok(Self { api, key, stop, answered, clients: clients.into() })
    }

    /// Waits until answers have a data version that begins with `generation`.
    pub(crate) async fn are_served(&self, generation: &str) -> Result<()> {
        eventually(PATIENCE, async || {
            let (version, _) = price(&self.api, &self.key).await?;
            ensure!(version.starts_with(generation), "still {version}");
            Ok(())
        })
        .await
    }

    /// Stops the clients. Returns the data versions that each client saw, in order and without immediate repetitions.
    pub(crate) async fn stop(self) -> Result<Vec<Vec<String>>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut seen = Vec::new();
        for client in self.clients {
            seen.push(client.await??);
        }
        ensure!(self.answered.load(Ordering::Relaxed) > 20, "there was no load");
        Ok(seen)
    }
}

#[tokio::test]
async fn rebuilt_from_facts_or_from_the_log_the_tables_are_the_same() -> Result<()> {
    let app = TestApp::start().await?;
    market(&app).await?;
    for (from, generation) in [("facts", 2), ("log", 3)] {
        let built = answer(&app, &["rebuild", "--from", from]).await?;
        assert_eq!(built["generation"], generation);
        let diff = answer(&app, &["diff", "--whole", "1", &generation.to_string()]).await?;
        assert_eq!(diff["identical"], true, "from {from}: {diff}");
        assert!(diff["tables"].as_array().is_some_and(|tables| {
            tables.iter().any(|table| table["table"] == "metrics" && table["rows_a"].as_i64() > Some(30))
        }));
    }
    let listed = answer(&app, &["list"]).await?;
    let states: Vec<&Value> = listed.as_array().into_iter().flatten().map(|one| &one["state"]).collect();
    assert_eq!(states, ["tailing", "tailing", "tailing"]);
    // The new generations receive new rows, like the served generation.
    load(&app, "prices.csv", "late", "symbol,date,close\nNEWC,2024-06-28,7\n").await?;
    app.catch_up().await?;
    assert_eq!(answer(&app, &["diff", "--whole", "1", "3"]).await?["identical"], true);
    assert_eq!(app.sql_value::<i64>("select count(*) from read_g3.stocks where symbol = 'NEWC'").await?, 1);
    app.projector(&["drop", "3"]).await?.success()?;
    assert_eq!(
        app.sql_value::<i64>("select count(*) from pg_namespace where nspname in ('read_g3', 'facts_g3')")
            .await?,
        0
    );
    Ok(())
}

#[tokio::test]
async fn a_killed_rebuild_goes_on_where_it_was() -> Result<()> {
    let app = TestApp::start().await?;
    market(&app).await?;
    for from in ["facts", "log"] {
        let mut rebuild = app.spawn(Program::Projector, &["rebuild", "--from", from]).await?;
        eventually(PATIENCE, async || {
            let building = "select count(*) from control.generations where state = 'building'";
            ensure!(app.sql_value::<i64>(building).await? == 1, "nothing is being built yet");
            Ok(())
        })
        .await?;
        rebuild.kill9()?;
        let refused = app.projector(&["promote", "2", "--accept-diff"]).await?;
        if refused.code != 0 {
            assert!(refused.stderr.contains("still being built"), "{}", refused.stderr);
        }
        let built = answer(&app, &["rebuild", "--from", from]).await?;
        let generation = built["generation"].as_i64().context("a generation")?;
        let diff = answer(&app, &["diff", "--whole", "1", &generation.to_string()]).await?;
        assert_eq!(diff["identical"], true, "{diff}");
    }
    Ok(())
}

#[tokio::test]
async fn promotion_and_rollback_under_load_fail_no_request_and_mix_no_generations() -> Result<()> {
    let app = Arc::new(two_sources().await?);
    let policy = policy(app.folder(), "right")?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let readers = Readers::start(&app).await?;
    answer(&app, &["rebuild", "--policy", &policy]).await?;
    let refused = app.projector(&["promote", "2"]).await?;
    assert!(refused.code != 0 && refused.stderr.contains("projector diff 1 2"), "{}", refused.stderr);
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    assert!(diff["reasons"][0].as_str().is_some_and(|reason| reason.contains("source policy")), "{diff}");
    let quotes = diff["tables"].as_array().into_iter().flatten().find(|table| table["table"] == "quotes");
    assert_eq!(quotes.context("quotes")?["rows"][0]["columns"]["price"], json!([20, 10]));

    for _ in 0..3 {
        answer(&app, &["promote", "2", "--accept-diff"]).await?;
        readers.are_served("g2.").await?;
        answer(&app, &["rollback"]).await?;
        readers.are_served("g1.").await?;
    }
    for seen in readers.stop().await? {
        assert!(seen.len() >= 5, "the client saw the changes: {seen:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_changed_rule_shows_exactly_which_figures_move() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    market(&app).await?;
    // The test imitates tables from a program with older rules: the rules have another version, and one figure differs.
    let symbol: String = app
        .sql_value(
            "select symbol from read_g1.metrics where increase_streak_years > 2 order by symbol limit 1",
        )
        .await?;
    app.sql("update read_g1.metrics set increase_streak_years = 1 where symbol = $1", &[&symbol]).await?;
    app.sql("update control.generations set method_version = '2025.9' where id = 1", &[]).await?;
    answer(&app, &["rebuild"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    assert!(
        diff["reasons"][0].as_str().is_some_and(|reason| reason.starts_with("rules: version 2025.9")),
        "{diff}"
    );
    let moved: Vec<&Value> =
        diff["tables"].as_array().into_iter().flatten().filter(|table| table["differing"] != 0).collect();
    assert_eq!(moved.len(), 1, "{diff}");
    assert_eq!(
        (&moved[0]["table"], &moved[0]["rows"][0]["key"]["symbol"]),
        (&json!("metrics"), &json!(symbol))
    );
    let columns = &moved[0]["rows"][0]["columns"];
    assert_eq!(
        columns.as_object().map(|columns| columns.keys().collect::<Vec<_>>()),
        Some(vec![&"increase_streak_years".to_owned()])
    );
    answer(&app, &["promote", "2"]).await?;
    // From here on, the generation with the older rules receives no new rows. A rollback to it needs an explicit flag.
    load(&app, "prices.csv", "late", "symbol,date,close\nNEWC,2024-06-28,7\n").await?;
    app.catch_up().await?;
    let refused = app.projector(&["rollback"]).await?;
    assert!(refused.code != 0 && refused.stderr.contains("--stale-ok"), "{}", refused.stderr);
    let back = answer(&app, &["rollback", "--stale-ok"]).await?;
    assert_eq!((&back["served"], &back["before"]), (&json!(1), &json!(2)));
    Ok(())
}

#[tokio::test]
async fn a_generation_until_a_sequence_or_as_of_a_date_is_frozen_for_study() -> Result<()> {
    let app = TestApp::start().await?;
    load(&app, "prices.csv", "a", "symbol,date,close\nOLD,2024-06-26,5\nOLD,2024-06-27,6\n").await?;
    let early: i64 = {
        app.catch_up().await?;
        app.sql_value("select checkpoint from control.fact_sets where name = 'facts'").await?
    };
    load(&app, "prices.csv", "b", "symbol,date,close\nOLD,2024-06-28,7\n").await?;
    app.catch_up().await?;
    answer(&app, &["rebuild", "--until-seq", &early.to_string()]).await?;
    answer(&app, &["rebuild", "--as-of", "2024-06-26"]).await?;
    load(&app, "prices.csv", "c", "symbol,date,close\nOLD,2024-07-01,8\n").await?;
    app.catch_up().await?;
    let price = async |generation: i32| {
        app.sql_value::<String>(&format!(
            "select price::text from read_g{generation}.quotes where symbol = 'OLD'"
        ))
        .await
    };
    assert_eq!((price(1).await?, price(2).await?, price(3).await?), ("8".into(), "6".into(), "5".into()));
    Ok(())
}

#[tokio::test]
async fn a_policy_decides_between_sources_and_a_retraction_brings_the_runner_up_back() -> Result<()> {
    let app = two_sources().await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let becomes = async |wanted: &str, why: &str| {
        eventually(PATIENCE, async || {
            let price: String = app.sql_value("select price::text from read_g1.quotes").await?;
            ensure!(price == wanted, "{why}: it is {price}");
            Ok(())
        })
        .await
    };
    becomes("20", "the later observation wins").await?;
    app.projector(&["policy", "set", "price", "right", "--rank", "1", "--now"]).await?.success()?;
    becomes("10", "the policy prefers the other").await?;
    load(&app, "prices-retracted.csv", "right", "symbol,date,action\nTWIN,2024-06-28,retract\n").await?;
    becomes("20", "its price is retracted").await?;
    Ok(())
}

#[tokio::test]
async fn explain_names_what_a_figure_rests_on() -> Result<()> {
    let app = TestApp::start().await?;
    load(&app, "prices.csv", "a", "symbol,date,close\nPAYS,2024-06-27,50\nPAYS,2024-06-28,50\n").await?;
    let dividends = "symbol,ex_date,amount,frequency,id\nPAYS,2023-09-15,0.5,quarterly,d1\nPAYS,2023-12-15,0.5,quarterly,d2\nPAYS,2024-03-15,0.5,quarterly,d3\nPAYS,2024-06-14,0.5,quarterly,d4\n";
    load(&app, "dividends.csv", "a", dividends).await?;
    let other = "symbol,ex_date,amount,id,observed_at\nPAYS,2024-06-13,0.7,other,2024-01-01T00:00:00Z\n";
    load(&app, "dividends.csv", "b", other).await?;
    let prices = "symbol,date,close,observed_at\nPAYS,2024-06-28,49,2024-01-01T00:00:00Z\nPAYS,2024-06-27,48,2024-01-01T00:00:00Z\n";
    load(&app, "prices.csv", "b", prices).await?;
    app.catch_up().await?;
    let told = answer(&app, &["explain", "PAYS", "price"]).await?;
    let seen = |place: usize| {
        let observation = &told["metrics"][0]["observations"][place];
        ["source", "date", "amount", "outcome"].map(|name| observation[name].clone())
    };
    assert_eq!(seen(0), [json!("a"), json!("2024-06-28"), json!(50), json!("used")], "{told}");
    assert_eq!(seen(1), [json!("b"), json!("2024-06-28"), json!(49), json!("covered")], "{told}");
    let before = answer(&app, &["explain", "PAYS", "price", "--date", "2024-06-27"]).await?;
    let told = before["metrics"][0]["observations"].as_array().context("observations")?;
    let told: Vec<Value> = told.iter().map(|o| json!([o["source"], o["amount"], o["outcome"]])).collect();
    assert_eq!(json!(told), json!([["a", 50, "used"], ["b", 48, "covered"]]), "{before}");
    let misplaced = app.projector(&["explain", "PAYS", "dps_ttm", "--date", "2024-06-27"]).await?;
    assert!(misplaced.stderr.contains("explain PAYS price --date"), "{}", misplaced.stderr);
    let explained = answer(&app, &["explain", "pays", "dps_ttm"]).await?;
    let metric = &explained["metrics"][0];
    assert_eq!((&metric["metric"], &metric["value"]), (&json!("dps_ttm"), &json!("2")));
    let ids: Vec<&Value> =
        metric["observations"].as_array().into_iter().flatten().map(|seen| &seen["id"]).collect();
    assert_eq!(ids.len(), 4, "{metric}");
    let loser = explained["unused"].as_array().into_iter().flatten().find(|seen| seen["source"] == "b");
    assert_eq!(loser.context("the loser is told")?["outcome"], "covered");
    let text = app.projector(&["explain", "PAYS", "dps_ttm"]).await?.success()?.stdout;
    assert!(text.contains("dps_ttm = 2") && text.contains("id d4"), "{text}");
    let unknown = app.projector(&["explain", "PAYS", "nonsense"]).await?;
    assert!(
        unknown.code == 1 && unknown.stderr.contains("metric nonsense does not exist"),
        "{}",
        unknown.stderr
    );
    let nobody = app.projector(&["explain", "NOBODY", "dps_ttm"]).await?;
    assert!(nobody.code == 1 && nobody.stderr.contains("NOBODY"), "{}", nobody.stderr);
    Ok(())
}

#[tokio::test]
async fn a_command_offers_the_flags_that_it_uses() -> Result<()> {
    let app = TestApp::start().await?;
    let help = async |command: &str| {
        Ok::<_, anyhow::Error>(app.projector(&[command, "--help"]).await?.success()?.stdout)
    };
    let (run, list, diff) = (help("run").await?, help("list").await?, help("diff").await?);
    for flag in ["--nats-url", "--memory", "--batch-bytes", "--lease-seconds"] {
        assert!(run.contains(flag), "{flag} in {run}");
        assert!(!list.contains(flag) && !diff.contains(flag), "{flag} in {list}{diff}");
    }
    assert!(!run.contains("--benchmark") && help("rebuild").await?.contains("--benchmark"));
    assert!(list.contains("--projector-database-url"));
    Ok(())
}

/// Fails if a policy change does not wait for the end of the projector's transaction. This transaction empties
/// `control.dirty`, so it could delete the row that the policy change adds there.
#[tokio::test]
async fn a_policy_waits_for_the_projectors_transaction() -> Result<()> {
    let app = two_sources().await?;
    let mut writing = app.servers().postgres.connect(app.database()).await?;
    let transaction = writing.transaction().await?;
    transaction.execute("select epoch from control.fact_sets where name = 'facts' for update", &[]).await?;
    let clears = async {
        eventually(PATIENCE, async || {
            let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
            ensure!(app.sql_value::<i64>(waiting).await? == 1, "nobody waits");
            Ok(())
        })
        .await?;
        transaction.execute("delete from control.dirty", &[]).await?;
        Ok::<_, anyhow::Error>(transaction.commit().await?)
    };
    let sets = app.projector(&["policy", "set", "price", "right", "--rank", "1", "--now"]);
    let (set, cleared) = tokio::join!(sets, clears);
    cleared?;
    set?.success()?;
    assert_eq!(app.sql_value::<i64>("select count(*) from control.dirty where '' = any (symbols)").await?, 1);
    Ok(())
}
