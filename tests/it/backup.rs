//! Backup and restore. After a restore to empty servers, the API returns the same responses as before.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, Program, Servers, TestApp, eventually};

use crate::api_world::{TODAY, World};
use crate::dashboard;
use crate::dashboard::visitor::Person;

const PATIENCE: Duration = Duration::from_secs(120);
const PATHS: [&str; 9] = [
    "/v1/stocks?limit=10",
    "/v1/stocks/COLA",
    "/v1/stocks/COLA/metrics",
    "/v1/stocks/COLA/dividends",
    "/v1/stocks/COLA/splits",
    "/v1/prices/COLA?start_date=2024-01-01",
    "/v1/etfs/FUND/holdings",
    "/v1/sectors",
    "/v1/search?q=cola",
];

/// Status and body of the response to each path in `PATHS`. ETags are left out, because a restore changes them.
pub(crate) async fn answers(api: &Api, key: &str) -> Result<BTreeMap<&'static str, (u16, String)>> {
    let mut answers = BTreeMap::new();
    for path in PATHS {
        let reply = api.get(path, Some(key)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        answers.insert(path, (reply.status.as_u16(), lasting(reply.text())));
    }
    Ok(answers)
}

/// Removes the values of `sync_from`, `next_cursor` and `factors_changed_at` from a response body, because a restore
/// changes these values.
fn lasting(body: String) -> String {
    ["\"sync_from\":\"", "\"next_cursor\":\"", "\"factors_changed_at\":\""].into_iter().fold(
        body.replace("\"factors_changed_at\":null", ""),
        |body, name| match body
            .split_once(name)
            .and_then(|(before, rest)| Some((before, rest.split_once('"')?.1)))
        {
            Some((before, after)) => format!("{before}{after}"),
            None => body,
        },
    )
}

async fn kept(world: &World) -> Result<String> {
    let folder = world.app.folder().join("kept").display().to_string();
    world.app.projector(&["backup", &folder]).await?.success()?;
    Ok(folder)
}

async fn empty_app() -> Result<TestApp> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).separate_accounts().without_migration();
    app.env("SERVICE_DATE", TODAY).start().await
}

#[tokio::test]
async fn after_both_servers_are_gone_every_answer_is_as_it_was() -> Result<()> {
    let world = World::start_in(TestApp::builder().separate_accounts(), &[]).await?;
    let app = &world.app;
    app.projector(&["policy", "set", "price", "test", "--rank", "9"]).await?.success()?;
    app.projector(&["expect", "set", "test", "price", "move", "12.5"]).await?.success()?;
    // After these commands, the API serves the second generation of the read tables. Every response contains the number
    // of the generation.
    app.projector(&["rebuild"]).await?.success()?;
    app.projector(&["promote", "2", "--accept-diff"]).await?.success()?;
    app.catch_up().await?;
    eventually(PATIENCE, async || {
        let health = world.api.get("/v1/health", None).await?.text();
        ensure!(health.contains("\"data_version\":\"g2."), "{health}");
        Ok(())
    })
    .await?;
    app.create_account("kept@example.com", "professional").await?;
    let kept_key = app.create_key("kept@example.com", "mine").await?;
    let before = answers(&world.api, &kept_key).await?;
    let folder = kept(&world).await?;
    let mode = std::fs::metadata(&folder)?.permissions().mode();
    assert_eq!(mode & 0o077, 0, "others may not read customers' addresses");
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        let text = std::fs::read(entry.path())?;
        let found = text.windows(kept_key.len()).any(|bytes| bytes == kept_key.as_bytes());
        assert!(!found, "a key's secret is in {}", entry.path().display());
    }

    let restored = empty_app().await?;
    let output = restored.projector(&["restore", &folder, "--json"]).await?.success()?;
    assert_eq!(output.json()?["differing"].as_array().map(Vec::len), Some(0), "{}", output.stdout);
    let api = restored.api_serve().await?;
    let after = answers(&api, &kept_key).await?;
    for (path, answer) in &before {
        assert_eq!(after.get(path), Some(answer), "{path}");
    }
    let of_account = "select string_agg(action, ',' order by id) from accounts.audit";
    assert_eq!(restored.sql_value::<String>(of_account).await?, app.sql_value::<String>(of_account).await?);
    let settings = "select (select count(*) from control.source_policy) || ' ' || (select sum(limit_value) from control.expectations)";
    assert_eq!(restored.sql_value::<String>(settings).await?, app.sql_value::<String>(settings).await?);

    // New accounts get ids after the restored ones, and new loads are applied.
    restored.create_account("new@example.com", "free").await?;
    restored.feed("prices.csv", "symbol,date,close\nCOLA,2024-06-17,51\n").today(TODAY).apply().await?;
    let quote = api.get("/v1/stocks/COLA/quote", Some(&kept_key)).await?;
    assert_eq!(quote.status, 200);

    // A second restore is refused, because it would overwrite data.
    let refused = restored.projector(&["restore", &folder]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("is not empty"), "{}", refused.stderr);
    Ok(())
}

#[tokio::test]
async fn a_restore_names_the_table_that_differs_and_takes_no_damaged_file() -> Result<()> {
    let world = World::start_in(TestApp::builder().separate_accounts(), &[]).await?;
    let folder = kept(&world).await?;
    let manifest = std::path::Path::new(&folder).join("backup.json");
    let text = std::fs::read_to_string(&manifest)?;
    let mut changed: serde_json::Value = serde_json::from_str(&text)?;
    *changed.pointer_mut("/read_tables/quotes/rows").context("quotes")? = 99.into();
    std::fs::write(&manifest, changed.to_string())?;
    let restored = empty_app().await?;
    let output = restored.projector(&["restore", &folder]).await?;
    assert_eq!(output.code, 4, "{}", output.stderr);
    assert!(
        output.stdout.contains("quotes differs: ") && !output.stdout.contains("stocks differs"),
        "{}",
        output.stdout
    );

    std::fs::write(&manifest, text)?;
    let file = std::path::Path::new(&folder).join("accounts.accounts.copy");
    std::fs::write(&file, "1\tother@example.com\n")?;
    let damaged = empty_app().await?.projector(&["restore", &folder]).await?;
    assert!(damaged.code == 1 && damaged.stderr.contains("accounts.accounts.copy"), "{}", damaged.stderr);
    Ok(())
}

/// Fails if a session or one-time link of the backup is valid on the restored servers. Both must be invalid, because
/// the user may have ended the session, or used the link, after the backup.
#[tokio::test]
async fn a_restore_revives_no_session_and_no_link_and_names_what_is_valid_again() -> Result<()> {
    let (app, api) = dashboard::open().await?;
    let mut holder = Person::signed_up(&api, "holder@example.com").await?;
    holder.create_key("mine").await?;
    let invited = app.api(&["account", "invite", "guest@example.com"]).await?.success()?;
    let link = invited.stdout.trim().rsplit_once("/link/").context("a link")?.1.to_owned();
    let invitation = format!("/link/{link}");
    assert_eq!(holder.get("/dashboard/keys").await?.status, 200);
    assert_eq!(Person::at(&api)?.get(&invitation).await?.status, 200);
    let folder = app.folder().join("kept").display().to_string();
    app.projector(&["backup", &folder]).await?.success()?;

    let restored = empty_app().await?;
    let output = restored.projector(&["restore", &folder]).await?.success()?;
    for line in [
        "1 accounts are restored as of ",
        "1 sessions and 1 one-time links were ended",
        "1 keys are valid again, also those deleted or replaced since then",
        "1 passwords are valid again, also those changed since then",
    ] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
    let restored_api = restored.api_serve_with(&[("SIGN_UP", "open")]).await?;
    let mut revived = Person::at(&restored_api)?;
    revived.cookie.clone_from(&holder.cookie);
    let page = revived.get("/dashboard/keys").await?;
    assert_ne!(page.status, 200, "the session is valid again: {}", page.text);
    let page = Person::at(&restored_api)?.get(&invitation).await?;
    assert_ne!(page.status, 200, "the link is valid again: {}", page.text);
    Ok(())
}

/// A backup lacks the last messages of the log if the projector has not applied them. The test fails if the backup does
/// not report the number of missing messages.
#[tokio::test]
async fn a_backup_names_the_messages_that_it_lacks() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    app.feed("prices-2.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
    let folder = |name: &str| app.folder().join(name).display().to_string();
    let lacking = app.projector(&["backup", &folder("lacking"), "--json"]).await?;
    assert_eq!(lacking.code, 4, "{}", lacking.stderr);
    assert!(lacking.json()?["missing_messages"].as_u64() > Some(0), "{}", lacking.stdout);
    assert!(lacking.stderr.contains("lacks the end of the log"), "{}", lacking.stderr);
    app.catch_up().await?;
    let whole = app.projector(&["backup", &folder("whole"), "--json"]).await?.success()?;
    assert_eq!(whole.json()?["missing_messages"], 0, "{}", whole.stdout);
    Ok(())
}

/// Commands that use a migrated database.
const USERS_OF_THE_DATABASE: [(Program, &[&str]); 8] = [
    (Program::Projector, &["run", "--until-caught-up"]),
    (Program::Projector, &["status"]),
    (Program::Projector, &["audit"]),
    (Program::Projector, &["rebuild"]),
    (Program::Projector, &["policy", "list"]),
    (Program::Projector, &["backup", "kept"]),
    (Program::Api, &["serve", "--listen", "127.0.0.1:0"]),
    (Program::Api, &["account", "list"]),
];

#[tokio::test]
async fn a_newer_program_refuses_a_database_without_its_migrations() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let ready = async || Ok::<_, anyhow::Error>(api.get("/readyz", None).await?);
    assert_eq!(ready().await?.status, 200);
    let lacking =
        "create table lacking as select * from refinery_schema_history order by version desc limit 1";
    app.sql(lacking, &[]).await?;
    app.sql("delete from refinery_schema_history h using lacking l where h.version = l.version", &[]).await?;
    for (program, arguments) in USERS_OF_THE_DATABASE {
        let output = app.run(program, arguments, &[]).await?;
        let told = (output.stdout.clone() + &output.stderr).contains("run projector migrate");
        assert!(output.code != 0 && told, "{program} {arguments:?}: {} {}", output.stdout, output.stderr);
    }
    // A running instance finds the older schema, for example of a restored database, when it connects again.
    app.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'dds_api'", &[]).await?;
    eventually(PATIENCE, async || {
        let reply = ready().await?;
        ensure!(reply.status == 503 && reply.text().contains("run projector migrate"), "{}", reply.text());
        Ok(())
    })
    .await?;
    app.sql("insert into refinery_schema_history select * from lacking", &[]).await?;
    eventually(PATIENCE, async || {
        let reply = ready().await?;
        ensure!(reply.status == 200, "{}", reply.text());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_older_program_refuses_a_newer_database_with_a_sentence() -> Result<()> {
    let app = TestApp::start().await?;
    app.sql(
        "insert into refinery_schema_history (version, name, applied_on, checksum) values (9999, 'later', '', '0')",
        &[],
    )
    .await?;
    let programs = USERS_OF_THE_DATABASE.into_iter().chain([(Program::Projector, &["migrate"][..])]);
    for (program, arguments) in programs {
        let output = app.run(program, arguments, &[]).await?;
        let text = output.stdout.clone() + &output.stderr;
        let told = text.contains("schema 9999") && text.contains("newer program");
        assert!(output.code != 0 && told, "{program} {arguments:?}: {}", output.stderr);
    }
    Ok(())
}
