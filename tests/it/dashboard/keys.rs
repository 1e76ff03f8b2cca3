//! Tests of API keys that an account holder creates, replaces and deletes in the dashboard.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use harness::eventually;

use super::open;
use super::visitor::Person;

const WHO: &str = "keys@example.com";
const CALL: &str = "/v1/stocks?limit=1";

#[tokio::test]
async fn a_person_makes_a_key_and_calls_with_it() -> Result<()> {
    let (_app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let empty = person.get("/dashboard").await?;
    assert!(empty.has("Create your first key"), "{}", empty.text);
    let page = person.fill("/dashboard", "/dashboard/keys", &[("name", "laptop"), ("life", "never")]).await?;
    let secret = page.between("<code id=\"secret\">", "</code>")?.to_owned();
    assert_eq!(page.header("cache-control"), "no-store");
    let curl = page.between("<code id=\"call\">", "</code>")?;
    assert!(curl.contains(&secret) && curl.contains(&api.base_url), "{curl}");
    assert_eq!(api.get(CALL, Some(&secret)).await?.status, 200);

    // The secret is on no other page.
    for path in ["/dashboard", "/dashboard/keys", "/dashboard/usage", "/dashboard/log"] {
        let page = person.get(path).await?;
        assert!(!page.has(&secret), "{path}");
    }
    let listed = person.get("/dashboard/keys").await?;
    let last_four = &secret[secret.len() - 4..];
    assert!(listed.has("laptop") && listed.has(&format!("dds_live_…{last_four}")), "{}", listed.text);
    harness::eventually(Duration::from_secs(120), async || {
        let used = person.get("/dashboard/keys").await?;
        ensure!(!used.has("not yet"), "{}", used.text);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_key_is_replaced_with_an_overlap_and_deleted() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let old = person.create_key("nightly").await?;
    let id: i64 = app.sql_value("select id from accounts.api_keys").await?;
    let path = format!("/dashboard/keys/{id}/replace");
    let page = person.fill(&path, &path, &[("overlap", "1h")]).await?;
    let new = page.between("<code id=\"secret\">", "</code>")?.to_owned();
    for secret in [&old, &new] {
        assert_eq!(api.get(CALL, Some(secret)).await?.status, 200);
    }
    // Sending the form again creates no second replacement. The list of keys has no replace button for the old key any
    // more.
    let again = person.fill("/dashboard/keys", &path, &[("overlap", "1h")]).await?;
    assert!(again.status == 422 && again.has("replaced already"), "{}", again.text);
    assert!(!person.get("/dashboard/keys").await?.has(&path));
    assert_eq!(app.sql_value::<i64>("select count(*) from accounts.api_keys").await?, 2);
    let hours: f64 = app
        .sql_value("select extract(epoch from expires_at - now())::float8 / 3600 from accounts.api_keys order by id limit 1")
        .await?;
    assert!((0.9..=1.0).contains(&hours), "{hours}");

    let newest: i64 = app.sql_value("select max(id) from accounts.api_keys").await?;
    let path = format!("/dashboard/keys/{newest}/delete");
    assert!(person.get(&path).await?.has("This cannot be undone"));
    let page = person.fill(&path, &path, &[]).await?;
    assert_eq!((page.status, page.location()), (303, "/dashboard/keys?done=key-deleted"));
    assert_eq!(api.get(CALL, Some(&new)).await?.status, 401);
    assert_eq!(api.get(CALL, Some(&old)).await?.status, 200);
    assert_eq!(person.get(&path).await?.status, 404, "what is deleted has no page");
    Ok(())
}

#[tokio::test]
async fn keys_end_when_they_should_and_mistakes_are_said() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    for (life, date, days) in [("90", "", 90.0), ("30", "", 30.0), ("365", "", 365.0)] {
        person
            .fill("/dashboard/keys", "/dashboard/keys", &[("name", life), ("life", life), ("date", date)])
            .await?;
        let lasts: f64 = app
            .sql_value("select extract(epoch from expires_at - now())::float8 / 86400 from accounts.api_keys order by id desc limit 1")
            .await?;
        assert!((days - 0.1..=days).contains(&lasts), "{life}: {lasts}");
    }
    let made = person
        .fill(
            "/dashboard/keys",
            "/dashboard/keys",
            &[("name", "day"), ("life", "date"), ("date", "2999-12-31")],
        )
        .await?;
    assert_eq!(made.status, 200);
    let ends: String = app
        .sql_value("select expires_at::date::text from accounts.api_keys order by id desc limit 1")
        .await?;
    assert_eq!(ends, "3000-01-01");
    for (fields, said) in [
        ([("name", "30"), ("life", "90"), ("date", "")], "an active key is already named 30"),
        ([("name", " "), ("life", "90"), ("date", "")], "1 to 64 characters"),
        ([("name", "x"), ("life", "date"), ("date", "2020-01-01")], "its expiry is in the past"),
        ([("name", "x"), ("life", "date"), ("date", "soon")], "Choose the key&#39;s last day"),
        ([("name", "x"), ("life", ""), ("date", "")], "Choose how long"),
    ] {
        let page = person.fill("/dashboard/keys", "/dashboard/keys", &fields).await?;
        let alert = page.between("role=\"alert\">", "</p>").context("an alert")?;
        let said = said.replace("&#39;", "'");
        assert!(page.status == 422 && alert.contains(&said), "{fields:?}: {} {alert}", page.status);
        assert!(page.has(&format!("value=\"{}\"", fields[0].1.trim())), "what was typed stays");
    }
    Ok(())
}

#[tokio::test]
async fn a_day_has_so_many_keys_and_those_long_deleted_are_not_listed() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let made = "insert into accounts.api_keys (account_id, hash, name, last_four, revoked_at, created_at)
                select a.id, sha256(convert_to($1::text || n, 'utf8')), $1::text || n, 'abcd', now() - $2::text::interval, now() - $2::text::interval
                from accounts.accounts a, generate_series(1, 99) n";
    app.sql(made, &[&"old ", &"40 days"]).await?;
    app.sql(made, &[&"new ", &"1 hour"]).await?;
    person.create_key("hundredth").await?;
    let fields = [("name", "one more"), ("life", "90")];
    let page = person.fill("/dashboard/keys", "/dashboard/keys", &fields).await?;
    assert!(page.status == 422 && page.has("at most 100 keys can be created per day"), "{}", page.text);
    let listed = app.api(&["key", "list", WHO, "--json"]).await?.success()?.json()?;
    assert_eq!(listed.as_array().map(Vec::len), Some(100));
    // The limit does not apply to the operator.
    app.create_key(WHO, "one more").await?;
    Ok(())
}

/// The keys must be counted after the wait for the account's lock. A statement that waits has an old snapshot and
/// misses new keys.
#[tokio::test]
async fn keys_made_at_once_are_no_more_than_keys_made_one_by_one() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let made = "insert into accounts.api_keys (account_id, hash, name, last_four)
                select a.id, sha256(convert_to(n::text, 'utf8')), 'old ' || n, 'abcd'
                from accounts.accounts a, generate_series(1, 8) n";
    app.sql(made, &[]).await?;
    let token = person.get("/dashboard/keys").await?.token()?;
    let other = app.servers().postgres.connect(app.accounts_database()).await?;
    other.batch_execute("begin; select from accounts.accounts for update").await?;
    let by_command = (0..4).map(|n| {
        let name = format!("command {n}");
        let app = &app;
        async move {
            let made = app.api(&["key", "create", WHO, "--name", &name]).await?;
            anyhow::Ok((made.code == 0, made.stderr))
        }
    });
    let by_page = (0..2).map(|n| {
        let (mut person, token, name) = (person.clone(), token.clone(), format!("page {n}"));
        async move {
            let fields = [("token", token.as_str()), ("name", &name), ("life", "90")];
            let page = person.post("/dashboard/keys", &fields).await?;
            anyhow::Ok((page.status == 200, page.text))
        }
    });
    let observer = app.servers().postgres.connect(app.accounts_database()).await?;
    let releasing = async {
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
        eventually(Duration::from_secs(60), async || {
            let count: i64 = observer.query_one(waiting, &[]).await?.get(0);
            ensure!(count >= 4, "{count} wait");
            Ok(())
        })
        .await?;
        other.batch_execute("rollback").await?;
        anyhow::Ok(())
    };
    let (commands, pages, released) = futures::join!(join_all(by_command), join_all(by_page), releasing);
    released?;
    let outcomes = commands.into_iter().chain(pages).collect::<Result<Vec<_>>>()?;
    assert_eq!(outcomes.iter().filter(|(is_made, _)| *is_made).count(), 2, "{outcomes:?}");
    let active: i64 =
        app.sql_value("select count(*) from accounts.api_keys where revoked_at is null").await?;
    assert_eq!(active, 10);
    Ok(())
}

#[tokio::test]
async fn a_name_has_something_to_see_and_one_spelling() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    person.create_key("caf\u{e9}").await?;
    for name in ["\u{200b}\u{feff}", "cafe\u{301}", "caf\u{e9}\u{200b}", "a\u{202e}b"] {
        let fields = [("name", name), ("life", "90")];
        let page = person.fill("/dashboard/keys", "/dashboard/keys", &fields).await?;
        assert_eq!(page.status, 422, "{name:?}: {}", page.text);
    }
    // The command also accepts the refused spelling, in which the accent is a separate character.
    app.api(&["key", "delete", WHO, "cafe\u{301}"]).await?.success()?;
    Ok(())
}

#[tokio::test]
async fn signing_out_deletes_only_the_key_of_the_reference_page() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let own = person.create_key("Reference page").await?;
    for _ in 0..2 {
        let page = person.fill("/docs", "/dashboard/keys/reference", &[]).await?;
        assert_eq!(page.status, 200, "{}", page.text);
    }
    let active = "select count(*) from accounts.api_keys where revoked_at is null and kind = ";
    let count = async |kind: &str| app.sql_value::<i64>(&format!("{active} '{kind}'")).await;
    assert_eq!((count("holder").await?, count("reference_page").await?), (1, 1));
    // A replacement of the key of the page ends with the session too.
    let id: i64 = app.sql_value("select max(id) from accounts.api_keys").await?;
    let path = format!("/dashboard/keys/{id}/replace");
    let page = person.fill(&path, &path, &[("overlap", "0")]).await?;
    let replaced = page.between("<code id=\"secret\">", "</code>")?.to_owned();
    person.fill("/dashboard", "/sign-out", &[]).await?;
    assert_eq!((count("holder").await?, count("reference_page").await?), (1, 0));
    assert_eq!(api.get(CALL, Some(&own)).await?.status, 200);
    assert_eq!(api.get(CALL, Some(&replaced)).await?.status, 401);
    Ok(())
}
