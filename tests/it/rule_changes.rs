//! Changed rule parameters: a generation derived with them, its figures, its promotion, and the rollback.

use anyhow::{Context, Result, ensure};
use harness::{Api, Program, TestApp, eventually};
use market::metrics::METHOD_VERSION;
use serde_json::{Value, json};

use crate::generations::{PATIENCE, answer, load};

const RULE: &str = "streak.tolerated_flat_years=1";

/// Starts an app with a security that raised its dividend every year except 2022. With the default rules, its streak of
/// increases ends in 2022.
async fn market() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    load(&app, "prices.csv", "test", "symbol,date,close\nFLAT,2024-06-27,50\nFLAT,2024-06-28,50\n").await?;
    let paid = [(2019, "1.0"), (2020, "1.1"), (2021, "1.2"), (2022, "1.2"), (2023, "1.3")];
    let rows = paid.map(|(year, amount)| format!("FLAT,{year}-05-15,{amount},annual,d{year}\n"));
    let dividends = format!("symbol,ex_date,amount,frequency,id\n{}", rows.concat());
    load(&app, "dividends.csv", "test", &dividends).await?;
    app.catch_up().await?;
    Ok(app)
}

/// Returns the increase streak and the version of the rules. `query` is empty for the current figures, or has a day in
/// the parameter `as_of`.
async fn served(api: &Api, key: &str, query: &str) -> Result<(Value, Value)> {
    let reply = api.get(&format!("/v1/stocks/FLAT/metrics{query}"), Some(key)).await?;
    ensure!(reply.status == 200, "{}: {}", reply.status, reply.text());
    let metrics = &reply.json()?["data"];
    Ok((metrics["increase_streak_years"].clone(), metrics["method_version"].clone()))
}

async fn becomes(api: &Api, key: &str, streak: i32, version: &str) -> Result<()> {
    let expected = (json!(streak), json!(version));
    eventually(PATIENCE, async || {
        let found = served(api, key, "").await?;
        ensure!(found == expected, "it is {found:?}");
        Ok(())
    })
    .await
}

async fn method(api: &Api) -> Result<Value> {
    Ok(api.get("/openapi.json", None).await?.json()?["info"]["x-method"].clone())
}

#[tokio::test]
async fn figures_under_another_rule_are_compared_served_kept_up_and_left_again() -> Result<()> {
    let app = market().await?;
    let api = app.api_serve().await?;
    let key = app.key("professional").await?;
    let changed = format!("{METHOD_VERSION}+{RULE}");
    becomes(&api, &key, 1, METHOD_VERSION).await?;
    assert_eq!(method(&api).await?, Value::Null);

    answer(&app, &["rebuild", "--rule", RULE]).await?;
    let streak = "select increase_streak_years from read_g2.metrics where symbol = 'FLAT'";
    assert_eq!(app.sql_value::<i32>(streak).await?, 3);
    let diff = answer(&app, &["diff", "1", "2"]).await?.to_string();
    assert!(diff.contains("increase_streak_years") && diff.contains(RULE), "{diff}");
    becomes(&api, &key, 1, METHOD_VERSION).await?;

    let refused = app.projector(&["promote", "2"]).await?;
    let reason = "streak.tolerated_flat_years 1 (by default 0)";
    assert!(refused.code == 1 && refused.stderr.contains(reason), "{}", refused.stderr);
    let why = "One flat year is no break.";
    answer(&app, &["promote", "2", "--accept-rules", "--note", why]).await?;
    becomes(&api, &key, 3, &changed).await?;
    let expected =
        json!({ "version": changed, "rules": { "streak.tolerated_flat_years": "1" }, "note": why });
    eventually(PATIENCE, async || {
        let found = method(&api).await?;
        ensure!(found == expected, "{found}");
        Ok(())
    })
    .await?;
    let listed = answer(&app, &["list"]).await?;
    assert_eq!((&listed[1]["rules"], &listed[1]["note"]), (&expected["rules"], &json!(why)), "{listed}");
    assert_eq!(served(&api, &key, "?as_of=2023-03-01").await?, (json!(2), json!(changed)));
    let told = answer(&app, &["explain", "FLAT", "increase_streak_years"]).await?;
    assert_eq!(told["method_version"], json!(changed));
    let formula = told["metrics"][0]["formula"].as_str().context("a formula")?;
    assert!(formula.contains("up to 1 flat years in a row"), "{formula}");

    // Both generations derive new events, each with its own rules.
    let projector = app.spawn(Program::Projector, &["run"]).await?;
    load(
        &app,
        "dividends-late.csv",
        "test",
        "symbol,ex_date,amount,frequency,id\nFLAT,2024-05-15,1.4,annual,d2024\n",
    )
    .await?;
    becomes(&api, &key, 4, &changed).await?;
    let before: i32 =
        app.sql_value("select increase_streak_years from read_g1.metrics where symbol = 'FLAT'").await?;
    assert_eq!(before, 2);
    drop(projector);

    answer(&app, &["rollback"]).await?;
    becomes(&api, &key, 2, METHOD_VERSION).await?;
    eventually(PATIENCE, async || {
        let found = method(&api).await?;
        ensure!(found.is_null(), "{found}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn parameters_are_listed_and_mistakes_are_told_before_anything_is_built() -> Result<()> {
    let app = TestApp::start().await?;
    let listed = answer(&app, &["rules"]).await?;
    let tolerance = listed.as_array().into_iter().flatten().find(|one| one["name"] == "streak.tolerance");
    let told = tolerance.context("the tolerance is listed")?;
    let expected = ["R14", "percent", "0.05", "0", "10"].map(|text| json!(text));
    assert_eq!(["rule", "unit", "default", "least", "most"].map(|field| told[field].clone()), expected);
    for (given, reason) in [
        ("streak.tolerated_flat_year=1", "the nearest is streak.tolerated_flat_years"),
        ("streak.tolerance=11", "it is from 0 to 10, in percent"),
        ("streak.tolerance", "is not NAME=VALUE"),
    ] {
        let refused = app.projector(&["rebuild", "--rule", given]).await?;
        assert!(refused.code == 1 && refused.stderr.contains(reason), "{given}: {}", refused.stderr);
    }
    assert_eq!(app.sql_value::<i64>("select count(*) from control.generations").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_screener_asks_as_many_years_as_the_served_rules_do() -> Result<()> {
    let app = market().await?;
    let api = app.api_serve().await?;
    let key = app.key("professional").await?;
    let kings = "/v1/screener/dividend-kings";
    let listed = async |path: &str| -> Result<(Value, Value)> {
        let body = api.get(path, Some(&key)).await?.json()?;
        Ok((body["data"][0]["symbol"].clone(), body["meta"]["criteria"]["min_streak"].clone()))
    };
    assert_eq!(listed(kings).await?, (Value::Null, json!(50)));
    answer(&app, &["rebuild", "--rule", "lists.king_years=1"]).await?;
    answer(&app, &["promote", "2", "--accept-diff", "--accept-rules", "--note", "One year."]).await?;
    eventually(PATIENCE, async || {
        let found = listed(kings).await?;
        ensure!(found == (json!("FLAT"), json!(1)), "it is {found:?}");
        Ok(())
    })
    .await?;
    assert_eq!(listed(&format!("{kings}?min_streak=2")).await?, (Value::Null, json!(2)));
    // A rebuild of only some tables copies the others from the served generation, so it uses the same rules.
    answer(&app, &["rebuild", "--only", "metrics"]).await?;
    let version: String = app.sql_value("select method_version from read_g3.metrics").await?;
    assert_eq!(version, format!("{METHOD_VERSION}+lists.king_years=1"));
    answer(&app, &["rollback"]).await?;
    answer(&app, &["promote", "2", "--accept-diff", "--accept-rules"]).await?;
    let note = "select note from control.generations where id = 2";
    assert_eq!(app.sql_value::<Option<String>>(note).await?, None, "the note of an earlier promotion");
    Ok(())
}

/// The served generation has a rule parameter that only another program version knows. Fails if this stops the
/// projector, or if a new generation without the parameter cannot be promoted.
#[tokio::test]
async fn a_rule_of_another_program_is_left_by_a_promotion() -> Result<()> {
    let app = market().await?;
    let unknown = r#"update control.generations set rules = '{"of.another_program":"1"}' where id = 1"#;
    app.sql(unknown, &[]).await?;
    load(&app, "prices-late.csv", "test", "symbol,date,close\nLATE,2024-06-28,7\n").await?;
    app.catch_up().await?;
    let late = async |generation: i32| {
        let query = format!("select count(*) from read_g{generation}.stocks where symbol = 'LATE'");
        app.sql_value::<i64>(&query).await
    };
    assert_eq!(late(1).await?, 0, "it stands still");
    let built = app.projector(&["rebuild"]).await?.success()?;
    assert!(built.stderr.contains("unknown to this program"), "{}", built.stderr);
    answer(&app, &["promote", "2", "--accept-diff"]).await?;
    assert_eq!(late(2).await?, 1);
    Ok(())
}
