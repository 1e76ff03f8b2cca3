//! Tests of attacks on the dashboard. `tests/asvs.md` lists the security requirement of each test.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use harness::{Api, TestApp};
use reqwest::Method;

use super::open;
use super::visitor::{PASSWORD, Person};

const WHO: &str = "who@example.com";
const PAGES: [&str; 17] = [
    "/",
    "/docs",
    "/status",
    "/methods",
    "/methods/R9",
    "/versions",
    "/nowhere",
    "/plans",
    "/sign-in",
    "/sign-up",
    "/dashboard",
    "/dashboard/keys",
    "/dashboard/usage",
    "/dashboard/plan",
    "/dashboard/account",
    "/dashboard/log",
    "/dashboard/nowhere",
];

async fn keys(app: &TestApp) -> Result<i64> {
    app.sql_value("select count(*) from accounts.api_keys where revoked_at is null").await
}

#[tokio::test]
async fn a_planted_session_is_not_taken_over() -> Result<()> {
    let (app, api) = open().await?;
    let mut thief = Person::signed_up(&api, "thief@example.com").await?;
    let planted = thief.cookie.clone();
    Person::signed_up(&api, WHO).await?;
    for cookie in [planted.clone(), Some(format!("session={}", "a".repeat(64)))] {
        let mut victim = Person::at(&api)?;
        victim.cookie.clone_from(&cookie);
        let signed = victim.post("/sign-in", &[("email", WHO), ("password", PASSWORD)]).await?;
        assert_eq!(signed.status, 303);
        assert_ne!(victim.cookie, cookie, "signing in gives a new session");
        assert!(victim.get("/dashboard").await?.has(WHO));
    }
    assert!(thief.get("/dashboard").await?.has("thief@example.com"));
    // A session ends when the same account signs in again in the same browser.
    let mut person = Person::at(&api)?;
    person.post("/sign-in", &[("email", WHO), ("password", PASSWORD)]).await?;
    let before = person.cookie.clone();
    person.post("/sign-in", &[("email", WHO), ("password", PASSWORD)]).await?;
    let mut old = Person::at(&api)?;
    old.cookie = before;
    assert_eq!(old.get("/dashboard").await?.status, 303);
    // The database has only hashes of session secrets.
    let secret = person.cookie.context("a cookie")?;
    let secret = secret.split_once('=').context("a pair")?.1;
    let stored: String = app
        .sql_value(
            "select string_agg(encode(hash, 'hex') || encode(hash, 'escape'), ' ') from accounts.sessions",
        )
        .await?;
    assert!(secret.len() == 64 && !stored.contains(secret));
    Ok(())
}

#[tokio::test]
async fn a_stolen_cookie_is_worth_nothing_after_signing_out() -> Result<()> {
    let (_app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let mut thief = person.clone();
    person.fill("/dashboard", "/sign-out", &[]).await?;
    for path in ["/dashboard", "/dashboard/keys"] {
        assert_eq!(thief.get(path).await?.status, 303, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn forms_from_elsewhere_change_nothing() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let token = person.get("/dashboard/keys").await?.token()?;
    let mut stranger = Person::signed_up(&api, "stranger@example.com").await?;
    let foreign = stranger.get("/dashboard/keys").await?.token()?;
    for token in ["", "0", &foreign, &token[..token.len() - 2]] {
        let fields = [("token", token), ("name", "forged"), ("life", "90")];
        assert_eq!(person.post("/dashboard/keys", &fields).await?.status, 403, "{token}");
    }
    let fields = [("token", token.as_str()), ("name", "forged"), ("life", "90")];
    for headers in [
        vec![("sec-fetch-site", "cross-site")],
        // A page on another host of the same site.
        vec![("sec-fetch-site", "same-site"), ("origin", "http://other.localhost")],
        vec![("origin", "https://evil.example")],
        vec![("origin", "null")],
    ] {
        let page = person.post_with("/dashboard/keys", &fields, &headers).await?;
        assert_eq!(page.status, 403, "{headers:?}");
        let entry = [("email", WHO), ("password", PASSWORD)];
        assert_eq!(person.post_with("/sign-in", &entry, &headers).await?.status, 403, "{headers:?}");
    }
    assert_eq!(keys(&app).await?, 0);
    // GET requests change nothing either.
    for path in ["/sign-out", "/dashboard/plan/cancel", "/dashboard/delete", "/dashboard/sessions/end"] {
        assert_eq!(person.get(path).await?.status, 303, "{path}");
    }
    assert_eq!(person.get("/dashboard").await?.status, 200);
    let same = person.post_with("/dashboard/keys", &fields, &[("sec-fetch-site", "same-origin")]).await?;
    assert_eq!((same.status, keys(&app).await?), (200, 1));
    Ok(())
}

#[tokio::test]
async fn pages_are_framed_stored_and_scripted_by_nobody() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    for path in PAGES {
        let page = person.get(path).await?;
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(page.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(page.header("referrer-policy"), "same-origin", "{path}");
        for inline in ["<style", " style=", "<script>", " onclick=", "javascript:"] {
            assert!(!page.has(inline), "{path} has {inline}");
        }
        let elsewhere = page.text.split('"').find(|part| part.starts_with("http") || part.starts_with("//"));
        assert_eq!(elsewhere, None, "{path} names another site");
    }
    let forwarded = [("x-forwarded-proto", "https".to_owned())];
    let unknown = api.send(Method::GET, "/", &forwarded).await?;
    assert_eq!(unknown.header("strict-transport-security"), None, "anybody can say so");
    let behind_proxy = app.api_serve_with(&[("TRUSTED_PROXIES", "127.0.0.1/32")]).await?;
    let secure = behind_proxy.send(Method::GET, "/", &forwarded).await?;
    assert_eq!(secure.header("strict-transport-security"), Some("max-age=31536000"));
    Ok(())
}

#[tokio::test]
async fn cookies_stay_with_this_host_and_away_from_scripts() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::at(&api)?;
    let fields = [("email", WHO), ("password", PASSWORD)];
    let local = person.post("/sign-up", &fields).await?;
    assert!(
        local.header("set-cookie").ends_with("; Path=/; HttpOnly; SameSite=Lax"),
        "{}",
        local.header("set-cookie")
    );
    for settings in [("TRUSTED_PROXIES", "127.0.0.1/32"), ("PUBLIC_URL", "https://data.example.com")] {
        let proxied = app.api_serve_with(&[settings]).await?;
        let forwarded = [("x-forwarded-proto", "https")];
        let page = Person::at(&proxied)?.post_with("/sign-in", &fields, &forwarded).await?;
        let cookie = page.header("set-cookie");
        let ends = cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert!(cookie.starts_with("__Host-session=") && ends, "{settings:?}: {cookie}");
    }
    // Data endpoints ignore cookies.
    let cookie = person.cookie.context("a cookie")?;
    assert_eq!(api.send(Method::GET, "/v1/stocks", &[("cookie", cookie)]).await?.status, 401);
    Ok(())
}

/// Sends a sign-in attempt. Returns its CPU time, the status, and the page without the email address.
async fn refused(api: &Api, email: &str, password: &str) -> Result<(Duration, u16, String)> {
    let before = api.cpu_time()?;
    let page = Person::at(api)?.post("/sign-in", &[("email", email), ("password", password)]).await?;
    Ok((api.cpu_time()? - before, page.status, page.text.replace(email, "…")))
}

#[tokio::test]
async fn signing_in_tells_nobody_which_addresses_have_accounts() -> Result<()> {
    let (app, api) = open().await?;
    for email in [WHO, "disabled@example.com"] {
        Person::signed_up(&api, email).await?;
    }
    app.api(&["account", "disable", "disabled@example.com"]).await?.success()?;
    app.create_account("passwordless@example.com", "free").await?;
    let attempts = [
        (WHO, "wrong horse battery"),
        ("disabled@example.com", PASSWORD),
        ("passwordless@example.com", PASSWORD),
        ("unknown@example.com", PASSWORD),
    ];
    // Background work of the process lengthens some attempts and shortens none, so the shortest ones are compared.
    let (mut shortest, mut pages) = ([Duration::MAX; 4], vec![]);
    for _ in 0..5 {
        for (shortest, (email, password)) in shortest.iter_mut().zip(attempts) {
            let (took, status, text) = refused(&api, email, password).await?;
            *shortest = took.min(*shortest);
            pages.push((status, text));
        }
    }
    pages.dedup();
    ensure!(pages.len() == 1, "{pages:#?}");
    let (least, most) = (shortest.iter().min().context("four")?, shortest.iter().max().context("four")?);
    assert!(*most < *least * 3, "{shortest:?}");
    Ok(())
}

#[tokio::test]
async fn guessing_is_slowed_down_and_locks_nobody_out() -> Result<()> {
    let (_app, api) = open().await?;
    let mut holder = Person::signed_up(&api, WHO).await?;
    let wrong = [("email", WHO), ("password", "wrong horse battery")];
    for _ in 0..5 {
        assert_eq!(Person::at(&api)?.post("/sign-in", &wrong).await?.status, 422);
    }
    // Of simultaneous guesses, one is answered after a delay. The others would have to wait too long, so they are refused,
    // before the first one is answered. There are more than two, because a busy machine may allow some more guesses.
    let guess = async || Person::at(&api)?.post("/sign-in", &wrong).await;
    let mut guesses: FuturesUnordered<_> = (0..8).map(|_| guess()).collect();
    let refused = guesses.next().await.context("a reply")??;
    assert_eq!(refused.status, 429);
    let others: Vec<_> = guesses.try_collect().await?;
    let heard = others.iter().filter(|reply| reply.status == 422).count();
    assert!((1..=3).contains(&heard), "{heard} guesses");
    assert!(others.iter().all(|reply| [422, 429].contains(&reply.status)));
    let wait: u64 = refused.header("retry-after").parse()?;
    assert!((1..=60).contains(&wait) && refused.has("Too many attempts"), "{wait}");
    // Existing sessions stay open, and the right password is accepted after a delay.
    assert_eq!(holder.get("/dashboard").await?.status, 200);
    let right = [("email", WHO), ("password", PASSWORD)];
    assert_eq!(Person::at(&api)?.post("/sign-in", &right).await?.status, 303);
    Ok(())
}

#[tokio::test]
async fn signing_in_leads_nowhere_else() -> Result<()> {
    let (_app, api) = open().await?;
    Person::signed_up(&api, WHO).await?;
    let elsewhere =
        ["//evil.example", "https://evil.example/", "/\\evil.example", "/dashboard/../v1", "/sign-out"];
    for next in elsewhere {
        let mut person = Person::at(&api)?;
        let page = person.get(&format!("/sign-in?next={}", next.replace('\\', "%5C"))).await?;
        assert!(page.has("name=\"next\" value=\"/dashboard\""), "{next}");
    }
    for next in &elsewhere[..4] {
        let fields = [("email", WHO), ("password", PASSWORD), ("next", next)];
        assert_eq!(Person::at(&api)?.post("/sign-in", &fields).await?.location(), "/dashboard", "{next}");
    }
    Ok(())
}

#[tokio::test]
async fn names_and_addresses_are_text_wherever_they_are_shown() -> Result<()> {
    let (_app, api) = open().await?;
    let name = "<script>alert(1)</script>\"'&";
    let mut person = Person::signed_up(&api, "o'brien&x=1@example.com").await?;
    person.create_key(name).await?;
    let agent = [("user-agent", "<img src=x onerror=alert(1)>")];
    let fields = [("email", "o'brien&x=1@example.com"), ("password", PASSWORD)];
    Person::at(&api)?.post_with("/sign-in", &fields, &agent).await?;
    for path in PAGES {
        let page = person.get(path).await?;
        assert!(!page.has("<script>") && !page.has("<img") && !page.has("&x=1"), "{path}: {}", page.text);
    }
    assert!(person.get("/dashboard/keys").await?.has("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let reflected = "\"><script>alert(1)</script>";
    let page = Person::at(&api)?.post("/sign-up", &[("email", reflected), ("password", PASSWORD)]).await?;
    assert!(page.status == 422 && !page.has("<script>"), "{}", page.text);
    for path in ["/dashboard/keys?done=%3Cscript%3E", "/sign-in?next=%22%3E%3Cscript%3E"] {
        assert!(!person.get(path).await?.has("<script>"), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn others_keys_and_sessions_are_not_there() -> Result<()> {
    let (app, api) = open().await?;
    let mut owner = Person::signed_up(&api, WHO).await?;
    let secret = owner.create_key("mine").await?;
    let mut other = Person::signed_up(&api, "other@example.com").await?;
    let key: i64 = app.sql_value("select id from accounts.api_keys").await?;
    let session: i64 = app.sql_value("select min(id) from accounts.sessions").await?;
    for action in ["replace", "delete"] {
        let path = format!("/dashboard/keys/{key}/{action}");
        assert_eq!(other.get(&path).await?.status, 404);
        let page = other.fill("/dashboard/keys", &path, &[("overlap", "0")]).await?;
        assert_eq!(page.status, 404, "{action}");
    }
    let id = session.to_string();
    let page = other.fill("/dashboard/account", "/dashboard/sessions/end", &[("id", &id)]).await?;
    assert_eq!(page.status, 422);
    assert_eq!(owner.get("/dashboard").await?.status, 200);
    assert_eq!(api.get("/v1/stocks?limit=1", Some(&secret)).await?.status, 200);
    assert!(!other.get("/dashboard/log").await?.has("mine"));
    for path in [
        "/dashboard/keys/x/delete",
        "/dashboard/keys/-1/delete",
        "/dashboard/keys/99999999999999999999/replace",
    ] {
        assert_eq!(owner.get(path).await?.status, 404, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn secrets_are_in_no_log_and_forms_have_an_end() -> Result<()> {
    let app = TestApp::builder().env("SIGN_UP", "open").env("RUST_LOG", "debug").start().await?;
    let api = app.api_serve().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let key = person.create_key("k").await?;
    let made = app.api(&["account", "reset", WHO, "--json"]).await?.success()?.json()?;
    let link = made["link"].as_str().context("a link")?.rsplit('/').next().unwrap_or_default().to_owned();
    person.get(&format!("/link/{link}")).await?;
    let cookie = person.cookie.clone().context("a cookie")?;
    let long = "x".repeat(20_000);
    assert_eq!(person.post("/sign-in", &[("email", WHO), ("password", &long)]).await?.status, 413);
    let log = api.process.log();
    assert!(log.contains("answered"), "{log}");
    for secret in [PASSWORD, &key, &link, cookie.split_once('=').context("a pair")?.1, "argon2id"] {
        assert!(!log.contains(secret), "{secret}");
    }
    Ok(())
}

/// Fails if sign-in or the dashboard waits for a lock on an account's row in `accounts.limiter`. Also fails if an API
/// call waits for a lock on the account's row in `accounts.accounts`.
#[tokio::test]
async fn signing_in_and_calls_do_not_wait_for_each_other() -> Result<()> {
    let (app, api) = open().await?;
    let key = Person::signed_up(&api, WHO).await?.create_key("k").await?;
    let other = app.servers().postgres.connect(app.accounts_database()).await?;
    other.batch_execute("begin; select from accounts.limiter for update").await?;
    let mut person = Person::at(&api)?;
    assert_eq!(person.post("/sign-in", &[("email", WHO), ("password", PASSWORD)]).await?.status, 303);
    assert_eq!(person.fill("/dashboard", "/sign-out", &[]).await?.status, 303);
    other.batch_execute("rollback; begin; select from accounts.accounts for update").await?;
    assert_eq!(api.get("/v1/stocks?limit=1", Some(&key)).await?.status, 200);
    // The row is still locked when the answer comes.
    let refused = person.post("/sign-in", &[("email", WHO), ("password", PASSWORD)]).await?;
    assert_eq!(refused.status, 503, "a row that is held is not waited for");
    other.batch_execute("rollback").await?;
    Ok(())
}

/// Fails if API calls wait for sign-ins. The password check of a sign-in is expensive.
#[tokio::test]
async fn a_flood_of_sign_ins_does_not_hold_up_calls() -> Result<()> {
    // The limits admit as many calls as the machine can make.
    let unlimited = [("ADDRESS_CALLS_PER_MINUTE", "1000000"), ("ADDRESS_CALLS_BURST", "1000000")];
    let app = TestApp::builder().env("SIGN_UP", "open").start().await?;
    let (api, key) = (app.api_serve_with(&unlimited).await?, app.key("professional").await?);
    app.sql("update accounts.tiers set rate_per_minute = 1000000, burst = 1000000", &[]).await?;
    let flood: Vec<_> = (0..25)
        .map(|number| {
            let person = Person::at(&api);
            tokio::spawn(async move {
                let email = format!("flood-{number}@example.com");
                person?.post("/sign-in", &[("email", &email), ("password", PASSWORD)]).await
            })
        })
        .collect();
    let mut served = 0;
    while flood.iter().any(|attempt| !attempt.is_finished()) {
        ensure!(api.get("/v1/stocks?limit=1", Some(&key)).await?.status == 200);
        served += 1;
    }
    let sign_ins = flood.len();
    for attempt in flood {
        assert_eq!(attempt.await??.status, 422);
    }
    // A call takes a small part of the time of a password check. If each call waited for a check, there would be about
    // as many calls as sign-ins.
    assert!(served > 4 * sign_ins, "{served} calls during {sign_ins} sign-ins");
    Ok(())
}
