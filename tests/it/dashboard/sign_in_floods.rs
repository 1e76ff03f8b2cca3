//! Tests of floods of sign-ins from many IP addresses. All instances share the limits, and a flood does not lock out
//! the account holder.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use harness::{Api, TestApp, eventually};

use super::visitor::{PASSWORD, Page, Person};

const WHO: &str = "who@example.com";
const WRONG: [(&str, &str); 2] = [("email", WHO), ("password", "wrong horse battery")];
const RIGHT: [(&str, &str); 2] = [("email", WHO), ("password", PASSWORD)];
/// Settings of an API behind a trusted proxy. The tests choose client addresses with the header `x-forwarded-for`.
const PROXIED: [(&str, &str); 4] = [
    ("SIGN_UP", "open"),
    ("TRUSTED_PROXIES", "127.0.0.1/32"),
    // With this URL, the names of cookies have no `__Host-` prefix.
    ("PUBLIC_URL", "http://127.0.0.1"),
    ("ADDRESS_CALLS_PER_MINUTE", "1000000"),
];

async fn sign_in(api: &Api, address: &str, fields: &[(&str, &str)], cookie: &str) -> Result<Page> {
    let headers = [("x-forwarded-for", address), ("cookie", cookie)];
    Person::at(api)?.post_with("/sign-in", fields, &headers).await
}

/// Returns the device cookie of a response as `name=value`.
fn device(page: &Page) -> Result<String> {
    let cookies = page.headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
    let cookie =
        cookies.into_iter().find(|cookie| cookie.starts_with("device=")).context("a device cookie")?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

/// Charges one sign-in attempt to several limits: name, attempts per minute, and longest delay in seconds. Returns the
/// number of the limit that refused the attempt (0 if none), and a delay in seconds.
async fn charge(app: &TestApp, subjects: &[(&str, i32, f64)]) -> Result<(i32, f64)> {
    let hashes: Vec<&[u8]> = subjects.iter().map(|(name, ..)| name.as_bytes()).collect();
    let intervals: Vec<f64> =
        subjects.iter().map(|(_, per_minute, _)| 60.0 / f64::from(*per_minute)).collect();
    let bursts: Vec<i32> = subjects.iter().map(|(_, per_minute, _)| *per_minute).collect();
    let longest: Vec<f64> = subjects.iter().map(|(.., longest)| *longest).collect();
    let query = "select refused_by, seconds from accounts.charge_attempt($1, $2, $3, $4)";
    let rows = app.sql(query, &[&hashes, &intervals, &bursts, &longest]).await?;
    let row = rows.first().context("a row")?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

#[tokio::test]
async fn an_attempt_is_charged_to_all_its_limits_or_to_none() -> Result<()> {
    let app = TestApp::start().await?;
    let both = ("both", 5, 20.0);
    for _ in 0..5 {
        assert_eq!(charge(&app, &[both]).await?, (0, 0.0));
    }
    let (refused_by, delay) = charge(&app, &[both]).await?;
    assert!(refused_by == 0 && (5.0..=12.0).contains(&delay), "the sixth waits {delay} s");
    let (refused_by, wait) = charge(&app, &[both]).await?;
    assert!(refused_by == 1 && wait <= 4.0, "{refused_by} {wait}");
    // Twenty attempts use up the account's limit. Attempts that this limit refuses are not charged to the limit of the
    // address.
    for number in 0..20 {
        let address = format!("address {number}");
        assert_eq!(charge(&app, &[(&address, 5, 20.0), ("account", 20, 0.0)]).await?.0, 0);
    }
    for _ in 0..20 {
        let (refused_by, _) = charge(&app, &[("home", 5, 20.0), ("account", 20, 0.0)]).await?;
        assert_eq!(refused_by, 2);
    }
    for _ in 0..5 {
        assert_eq!(charge(&app, &[("home", 5, 20.0)]).await?, (0, 0.0));
    }
    // Later attempts remove expired rows.
    app.sql("update accounts.sign_in_limits set full_at = full_at - interval '3 minutes'", &[]).await?;
    for number in 0..4 {
        charge(&app, &[(&format!("later {number}"), 5, 20.0)]).await?;
    }
    let rows: i64 = app.sql_value("select count(*) from accounts.sign_in_limits").await?;
    assert!(rows <= 4, "{rows} rows");
    Ok(())
}

#[tokio::test]
async fn two_instances_accept_no_more_guesses_than_one() -> Result<()> {
    let app = TestApp::start().await?;
    let (one, two) = (app.api_serve_with(&PROXIED).await?, app.api_serve_with(&PROXIED).await?);
    Person::signed_up(&one, WHO).await?;
    let started = Instant::now();
    let guesses = (0..52).map(|number| {
        let api = if number % 2 == 0 { &one } else { &two };
        async move { sign_in(api, &format!("203.0.113.{number}"), &WRONG, "").await }
    });
    let pages = join_all(guesses).await.into_iter().collect::<Result<Vec<_>>>()?;
    let heard = pages.iter().filter(|page| page.status == 422).count();
    let refused = pages.iter().filter(|page| page.status == 429).count();
    assert_eq!(heard + refused, 52, "{:?}", pages.iter().map(|page| page.status).collect::<Vec<_>>());
    // The limit is twenty attempts at once, and then one every three seconds.
    let flowed = usize::try_from(started.elapsed().as_secs() / 3)? + 1;
    assert!((20..=20 + flowed).contains(&heard), "{heard} in {:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_flood_from_new_addresses_keeps_no_holder_out() -> Result<()> {
    let app = TestApp::start().await?;
    let (api, other) = (app.api_serve_with(&PROXIED).await?, app.api_serve_with(&PROXIED).await?);
    Person::signed_up(&api, WHO).await?;
    let first = sign_in(&api, "198.51.100.1", &RIGHT, "").await?;
    assert_eq!(first.status, 303, "{}", first.text);
    let device = device(&first)?;
    // Half of the guesses are for this account, and half for other accounts. Each guess comes from another address.
    let base = api.base_url.clone();
    let flood: Vec<_> = (0..150u32)
        .map(|number| {
            let client = harness::client(Duration::from_secs(60));
            let address = format!("203.0.{}.{}", number / 200, number % 200);
            let email =
                if number % 2 == 0 { WHO.to_owned() } else { format!("someone-{number}%40example.com") };
            let url = format!("{base}/sign-in");
            tokio::spawn(async move {
                let body = format!("email={email}&password=wrong%20horse%20battery");
                let request = client?.post(url).body(body).header("x-forwarded-for", address);
                let request = request.header("content-type", "application/x-www-form-urlencoded");
                Ok::<_, anyhow::Error>(request.send().await?.status().as_u16())
            })
        })
        .collect();
    let busy = "select count(*) from accounts.sign_in_limits";
    eventually(Duration::from_secs(120), async || {
        let rows: i64 = app.sql_value(busy).await?;
        ensure!(rows > 60, "{rows} subjects");
        Ok(())
    })
    .await?;
    // The holder signs in twice from a known network without the device cookie, and once from an unknown network with
    // the cookie.
    for (instance, address, cookie) in
        [(&api, "198.51.100.1", ""), (&other, "198.51.100.1", ""), (&api, "192.0.2.77", device.as_str())]
    {
        let page = sign_in(instance, address, &RIGHT, cookie).await?;
        assert_eq!(page.status, 303, "{address} {cookie}: {}", page.text);
    }
    for attempt in flood {
        let status = attempt.await??;
        assert!([422, 429, 503].contains(&status), "{status}");
    }
    // Each use of a device cookie replaces it, so the number of known devices stays small.
    let known: i64 = app.sql_value("select count(*) from accounts.known_devices").await?;
    assert!((3..=8).contains(&known), "{known}");
    Ok(())
}

#[tokio::test]
async fn refused_sign_ins_are_in_the_holders_log() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&PROXIED).await?;
    let mut holder = Person::signed_up(&api, WHO).await?;
    assert_eq!(sign_in(&api, "203.0.113.9", &WRONG, "").await?.status, 422);
    eventually(Duration::from_secs(120), async || {
        let page = holder.get("/dashboard/log").await?;
        ensure!(
            page.has("Sign-in refused") && page.has("203.0.113.9") && page.has("a visitor"),
            "{}",
            page.text
        );
        Ok(())
    })
    .await?;
    // The log of an account gets at most fifty such entries a day.
    let entries = "insert into accounts.audit (account_id, action, actor)
                   select id, 'session.refuse', 'visitor' from accounts.accounts, generate_series(1, 49)";
    app.sql(entries, &[]).await?;
    assert_eq!(sign_in(&api, "203.0.113.10", &WRONG, "").await?.status, 422);
    assert_eq!(sign_in(&api, "203.0.113.11", &RIGHT, "").await?.status, 303);
    let refused = "select count(*) from accounts.audit where action = 'session.refuse'";
    assert_eq!(app.sql_value::<i64>(refused).await?, 50);
    Ok(())
}
