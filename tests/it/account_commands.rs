//! Commands that administer accounts and API keys: their effects, their error messages, and their entries in the audit
//! log.

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::{Value, json};

use crate::api_world::check;

const WHO: &str = "who@example.com";

async fn run(app: &TestApp, arguments: &[&str]) -> Result<Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    app.api(&arguments).await?.success()?.json()
}

async fn refusal(app: &TestApp, arguments: &[&str]) -> Result<String> {
    let output = app.api(arguments).await?;
    anyhow::ensure!(output.code != 0, "{arguments:?} was accepted: {}", output.stdout);
    Ok(output.stderr)
}

#[tokio::test]
async fn an_account_lives_through_its_commands() -> Result<()> {
    let app = TestApp::start().await?;
    let created = run(&app, &["account", "create", "Who@Example.com", "--tier", "premium"]).await?;
    check(
        &created,
        json!({ "email": WHO, "tier": "premium", "effective_tier": "premium", "paid_until": null }),
    );
    check(&run(&app, &["account", "show", WHO]).await?, json!({ "active_keys": 0, "used_this_month": 0 }));
    let changed = run(&app, &["account", "set-tier", WHO, "starter", "--paid-until", "2020-01-01"]).await?;
    check(
        &changed,
        json!({ "tier": "starter", "effective_tier": "free", "paid_until": "2020-01-02T00:00:00Z" }),
    );
    check(&run(&app, &["account", "set-tier", WHO, "pro"]).await?, json!({ "tier": "professional" }));
    run(&app, &["account", "set-tier", WHO, "starter"]).await?;
    let cancelled = run(&app, &["account", "cancel", WHO, "--paid-until", "2999-12-31"]).await?;
    check(&cancelled, json!({ "effective_tier": "starter", "paid_until": "3000-01-01T00:00:00Z" }));
    assert_eq!(run(&app, &["account", "list"]).await?.as_array().map(Vec::len), Some(1));
    let device =
        "insert into accounts.known_devices (account_id, device) select id, '\\x01' from accounts.accounts";
    app.sql(device, &[]).await?;
    check(&run(&app, &["account", "delete", WHO]).await?, json!({ "deleted": true }));
    assert!(app.sql("select from accounts.known_devices", &[]).await?.is_empty());
    assert_eq!(run(&app, &["account", "list"]).await?, json!([]));

    let history = run(&app, &["audit", WHO]).await?;
    let actions: Vec<&str> =
        history.as_array().into_iter().flatten().filter_map(|row| row["action"].as_str()).collect();
    let expected = [
        "account.create",
        "account.set_tier",
        "account.set_tier",
        "account.set_tier",
        "account.cancel",
        "account.delete",
    ];
    assert_eq!(actions, expected);
    check(&history[1]["details"]["before"], json!({ "tier": "premium" }));
    check(&history[1]["details"]["after"], json!({ "tier": "starter" }));
    // The email address can be used again. The new account does not get the tier or the keys of the old account.
    check(&run(&app, &["account", "create", WHO]).await?, json!({ "tier": "free", "active_keys": 0 }));
    Ok(())
}

#[tokio::test]
async fn a_command_prints_what_it_changed() -> Result<()> {
    let app = TestApp::start().await?;
    app.create_account(WHO, "free").await?;
    let printed =
        async |arguments: &[&str]| -> Result<String> { Ok(app.api(arguments).await?.success()?.stdout) };
    let tier = printed(&["account", "set-tier", WHO, "starter", "--paid-until", "2999-12-31"]).await?;
    assert!(tier.starts_with(&format!("account {WHO}:\n")), "{tier}");
    assert!(
        tier.contains("tier: free -> starter\n") && tier.contains("paid_until: - -> 3000-01-01 00:00\n"),
        "{tier}"
    );
    assert!(!tier.contains("active_keys") && !tier.contains("created_at"), "{tier}");
    let disabled = printed(&["account", "disable", WHO]).await?;
    assert!(disabled.lines().count() == 2 && disabled.contains("disabled_at: - -> "), "{disabled}");
    let renamed = printed(&["account", "rename", WHO, "new@example.com"]).await?;
    assert_eq!(renamed, format!("account new@example.com:\nemail: {WHO} -> new@example.com\n"));
    Ok(())
}

#[tokio::test]
async fn keys_are_shown_once_and_replaced() -> Result<()> {
    let app = TestApp::start().await?;
    app.create_account(WHO, "free").await?;
    let create =
        ["key", "create", WHO, "--name", "main", "--expires", "2999-01-01", "--rate-per-minute", "7"];
    let key = run(&app, &create).await?;
    let secret = key["secret"].as_str().context("a secret")?;
    assert!(secret.ends_with(key["last_four"].as_str().context("last four")?));
    let listed = run(&app, &["key", "list", WHO]).await?;
    check(&listed[0], json!({ "name": "main", "status": "active", "rate_per_minute": 7 }));
    assert!(!listed.to_string().contains(secret));

    let rolled = run(&app, &["key", "re-roll", WHO, "main", "--overlap", "24h"]).await?;
    assert_ne!(rolled["secret"], key["secret"]);
    check(&rolled, json!({ "name": "main", "rate_per_minute": 7, "expires_at": key["expires_at"] }));
    let overlap: f64 = app
        .sql_value("select extract(epoch from expires_at - now())::float8 / 3600 from accounts.api_keys order by id limit 1")
        .await?;
    assert!((23.9..=24.0).contains(&overlap), "{overlap}");
    // Two keys now have this name, so the command asks for an id.
    assert!(refusal(&app, &["key", "delete", WHO, "main"]).await?.contains("use the id"));
    let first = key["id"].to_string();
    let twice = refusal(&app, &["key", "re-roll", WHO, &first, "--overlap", "7d"]).await?;
    assert!(twice.contains("replaced already"), "{twice}");
    // The overlap does not extend the life of an old key that expires earlier.
    let second = rolled["id"].to_string();
    app.sql("update accounts.api_keys set expires_at = now() + interval '2 hours' where id > 1", &[]).await?;
    run(&app, &["key", "re-roll", WHO, &second, "--overlap", "7d"]).await?;
    let longest: f64 = app
        .sql_value("select extract(epoch from expires_at - now())::float8 / 3600 from accounts.api_keys where id > 1 order by id limit 1")
        .await?;
    assert!(longest <= 2.0, "{longest}");
    run(&app, &["key", "delete", WHO, &second]).await?;
    run(&app, &["key", "delete", WHO, &first]).await?;
    assert!(refusal(&app, &["key", "delete", WHO, &first]).await?.contains("no active key"));

    let history = run(&app, &["audit", WHO]).await?.to_string();
    for action in ["key.create", "key.re_roll", "key.delete"] {
        assert!(history.contains(action), "{history}");
    }
    assert!(!history.contains("secret") && !history.contains("dds_live"), "{history}");
    Ok(())
}

#[tokio::test]
async fn a_full_account_replaces_without_overlap() -> Result<()> {
    let app = TestApp::start().await?;
    app.create_account(WHO, "free").await?;
    for number in 0..10 {
        app.create_key(WHO, &format!("key {number}")).await?;
    }
    assert!(
        refusal(&app, &["key", "re-roll", WHO, "key 3", "--overlap", "1h"]).await?.contains("--overlap 0")
    );
    run(&app, &["key", "re-roll", WHO, "key 3"]).await?;
    check(&run(&app, &["account", "show", WHO]).await?, json!({ "active_keys": 10 }));
    Ok(())
}

#[tokio::test]
async fn usage_tells_what_is_used() -> Result<()> {
    let app = TestApp::start().await?;
    app.create_account(WHO, "starter").await?;
    app.sql(
        "update accounts.limiter set used = 12345, tokens = 7.5 * 60000000, at = now() - interval '1 second'",
        &[],
    )
    .await?;
    let usage = run(&app, &["usage", WHO]).await?;
    check(
        &usage,
        json!({ "account": WHO, "tier": "starter", "current": 12345, "limit": 50000, "percentage": 24.69, "rate_per_minute": 30, "burst": 60 }),
    );
    assert!((8..60).contains(&usage["available_now"].as_i64().context("available")?), "{usage}");
    Ok(())
}

#[tokio::test]
async fn commands_say_what_is_wrong() -> Result<()> {
    let app = TestApp::start().await?;
    app.create_account(WHO, "free").await?;
    app.create_key(WHO, "taken").await?;
    for (arguments, reason) in [
        (vec!["account", "create", WHO], "already"),
        (vec!["account", "create", "nobody"], "not an email address"),
        (vec!["account", "create", "x@example.com", "--tier", "gold"], "must be one of"),
        (vec!["account", "show", "x@example.com"], "account x@example.com does not exist"),
        (vec!["account", "set-tier", "x@example.com", "free"], "account x@example.com does not exist"),
        (vec!["account", "delete", "x@example.com"], "account x@example.com does not exist"),
        (vec!["account", "cancel", WHO, "--paid-until", "soon"], "YYYY-MM-DD"),
        (vec!["usage", "x@example.com"], "account x@example.com does not exist"),
        (vec!["key", "create", WHO, "--name", " "], "1 to 64"),
        (vec!["key", "create", WHO, "--name", "k", "--rate-per-minute", "0"], "0"),
        (vec!["key", "create", WHO, "--name", "k", "--expires", "2020-01-01"], "its expiry is in the past"),
        (vec!["key", "create", WHO, "--name", " taken "], "already named taken"),
        (vec!["key", "re-roll", WHO, "none"], "no active key"),
        (vec!["key", "re-roll", WHO, "none", "--overlap", "2h"], "must be one of"),
        (vec!["key", "delete", WHO, "none"], "no active key"),
    ] {
        let said = refusal(&app, &arguments).await?;
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
    Ok(())
}
